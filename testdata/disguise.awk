# A module that computes something else of the same kind: every %name and the module's name are replaced, metadata and stack-frame tables
# are left out, and the dimension `from` becomes `to` wherever numbers follow dimensions: in shapes, slice={}, slice_sizes={},
# dynamic_slice_sizes={}, fft_length={} and size= of windows. The input is hlo-opt's print, where all names carry a %.
# With -v list=1 it prints the dimensions above 2 instead, the most frequent first; nothing when an array has more than `most` elements.
function without_metadata(line,    at, head, c, depth, quoted) {
    at = index(line, ", metadata={")
    if (!at)
        return line
    head = substr(line, 1, at - 1)
    line = substr(line, at + 11)
    do {
        c = substr(line, 1, 1)
        line = substr(line, 2)
        if (quoted && c == "\\")
            line = substr(line, 2)
        else if (c == "\"")
            quoted = !quoted
        else if (!quoted)
            depth += (c == "{") - (c == "}")
    } while (depth > 0 && line != "")
    return without_metadata(head line)
}

function renamed(line,    out, name) {
    while (match(line, /%[A-Za-z_][A-Za-z0-9_.-]*/)) {
        name = substr(line, RSTART, RLENGTH)
        if (!(name in names))
            names[name] = "%v" ++n_names
        out = out substr(line, 1, RSTART - 1) names[name]
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

# The numbers of one piece of text that are dimensions.
function changed(piece,    out) {
    while (match(piece, /[0-9]+/)) {
        out = out substr(piece, 1, RSTART - 1) (substr(piece, RSTART, RLENGTH) == from ? to : substr(piece, RSTART, RLENGTH))
        piece = substr(piece, RSTART + RLENGTH)
    }
    return out piece
}

function resized(line, pattern,    out, piece) {
    while (match(line, pattern)) {
        out = out substr(line, 1, RSTART - 1)
        piece = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        out = out changed(piece)
    }
    return out line
}

function count_dimensions(line,    shape, dims, n, k, product) {
    while (match(line, /\[[0-9,]+\]/)) {
        n = split(substr(line, RSTART + 1, RLENGTH - 2), dims, ",")
        line = substr(line, RSTART + RLENGTH)
        for (k = product = 1; k <= n; k++) {
            product *= dims[k]
            if (dims[k] > 2)
                seen[dims[k]]++
        }
        if (product > largest)
            largest = product
    }
}

/^(FileNames|FunctionNames|FileLocations|StackFrames)/ { table = 1; next }
table && /^([0-9]|$)/ { next }
{
    table = 0
    line = without_metadata($0)
    if (list)
        count_dimensions(line)
    else {
        sub(/^HloModule [^ ,]*/, "HloModule disguised", line)
        line = renamed(line)
        line = resized(line, "\\[[0-9,<=]+\\]")
        line = resized(line, "(slice|slice_sizes|dynamic_slice_sizes|fft_length)=\\{[^}]*\\}")
        line = resized(line, "[{ ]size=[0-9x]+")
        print line
    }
}
END {
    while (list && largest <= most && length(seen)) {
        best = ""
        for (k in seen)
            if (best == "" || seen[k] > seen[best] || (seen[k] == seen[best] && k + 0 < best + 0))
                best = k
        print best
        delete seen[best]
    }
}
