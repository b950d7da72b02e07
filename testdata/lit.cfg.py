# Every .hlo and .test file below this folder says in RUN lines how to test it. The tools come from the build folder; the
# compile cache is the test run's own.
import os
import shutil
import sys

import lit.formats

config.name = "hlo-tools"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".hlo", ".test"]
config.excludes = ["models", "Inputs", "fuzz"]
config.test_source_root = os.path.join(config.hlo_source, "testdata")
config.test_exec_root = os.path.join(config.hlo_build, "test-output")

links = os.path.join(config.test_exec_root, "bin")
os.makedirs(links, exist_ok=True)
for name, target in (("FileCheck", config.filecheck), ("not", config.not_tool), ("split-file", config.split_file)):
    link = os.path.join(links, name)
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(target, link)

path = [os.path.join(config.hlo_build, "tools"), links, config.environment.get("PATH", "/usr/bin:/bin")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
config.environment["LC_ALL"] = "C"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

corpus = os.path.join(config.hlo_source, "..", "shared", "corpus")
config.substitutions.append(("%cc", config.compiler))
config.substitutions.append(("%sanitizers", config.sanitizers))  # what links with a library of this build has them too
config.substitutions.append(("%build", config.hlo_build))
config.substitutions.append(("%check-broken", os.path.join(config.test_source_root, "check-broken")))
config.substitutions.append(("%check-disguised", os.path.join(config.test_source_root, "check-disguised")))
config.substitutions.append(("%check-main", '%s "%s" "%s"' % (os.path.join(config.test_source_root, "check-main"), config.compiler, config.clang)))
config.substitutions.append(("%check-man", os.path.join(config.test_source_root, "check-man")))
config.substitutions.append(("%check-proto", os.path.join(config.test_source_root, "check-proto")))
config.substitutions.append(("%check-print", os.path.join(config.test_source_root, "check-print")))
config.substitutions.append(("%check-lang", os.path.join(config.test_source_root, "check-lang")))
config.substitutions.append(("%check-settled", os.path.join(config.test_source_root, "check-settled")))
for name in ("make-npy", "make-npz", "make-safetensors", "make-snapshot"):
    config.substitutions.append(("%" + name, os.path.join(config.test_source_root, name)))
config.substitutions.append(("%show-npz", '"%s" "%s"' % (sys.executable, os.path.join(config.test_source_root, "show-npz"))))
config.substitutions.append(("%bench-kernels", '"%s" "%s"' % (sys.executable, os.path.join(config.hlo_source, "bench", "kernels"))))
config.substitutions.append(("%corpus-table", os.path.join(config.hlo_source, "bench", "corpus-table")))
config.substitutions.append(("%optimizer-proof", '"%s" "%s"' % (sys.executable, os.path.join(config.hlo_source, "bench", "optimizer-proof"))))
config.substitutions.append(("%models", os.path.join(config.test_source_root, "models")))
config.substitutions.append(("%corpus", corpus))
if config.clang != "no":
    config.available_features.add("clang")
    config.substitutions.append(("%clang", config.clang))
if config.nvcc != "no":
    config.available_features.add("nvcc")
    config.substitutions.append(("%nvcc", config.nvcc))
    toolkit = os.path.dirname(os.path.dirname(config.nvcc))
    config.substitutions.append(("%toolkit", toolkit))
    header, library = os.path.join(toolkit, "include", "cudnn_graph.h"), os.path.join(toolkit, "lib64", "libcudnn.so.9")
    if os.path.exists(header) and os.path.exists(library):
        config.available_features.add("cudnn")
        for name, value in (("%cudnn-header", header), ("%cudnn-library", library), ("%cudnn-include", os.path.join(toolkit, "include"))):
            config.substitutions.append((name, value))
cudasim = os.path.join(config.hlo_source, "src", "cudasim")
for name, checked in (("%cudasim", "-fsanitize=thread"), ("%cudasim-unchecked", "")):
    command = "g++ -x c++ -std=gnu++17 -g -O1 -Wall -Wextra -Werror %s -I%s -I%s -c" % (checked, os.path.dirname(cudasim), cudasim)
    config.substitutions.append((name + r"\b(?!-)", command))
if shutil.which("g++"):
    config.available_features.add("g++")
if shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64"):
    config.available_features.add("aarch64")
if config.mandoc != "no":
    config.available_features.add("mandoc")
if config.sanitized:
    config.available_features.add("sanitized")
room = os.statvfs(config.hlo_build)
if room.f_bavail * room.f_frsize > 1 << 30:
    config.available_features.add("disk")
if os.path.isdir(corpus):
    config.available_features.add("corpus")
