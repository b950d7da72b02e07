/* What a pipeline has done, in numbers: a line a stage, those of fix(...) like the others. */
#include "config.h"

#include "passes/pass_int.h"

static double total_seconds(const Stage *s)
{
    double sum = 0;
    for (; s; s = s->next)
        sum += s->pass ? s->seconds : total_seconds(s->body);
    return sum;
}

static void report_times(FILE *to, const Stage *s, double total)
{
    for (; s; s = s->next)
        if (s->pass)
            fprintf(to, "%10.3f ms %5.1f%% %4lld  %s\n", 1e3 * s->seconds, total > 0 ? 100 * s->seconds / total : 0.0,
                    (long long)s->runs, s->pass->name);
        else
            report_times(to, s->body, total);
}

static void report_stats(FILE *to, const Stage *s)
{
    for (; s; s = s->next)
        if (s->pass)
            fprintf(to, "%8lld rewrites %4lld of %lld runs changed  %s\n", (long long)s->rewrites, (long long)s->changes,
                    (long long)s->runs, s->pass->name);
        else
            report_stats(to, s->body);
}

typedef struct JsonReport {
    FILE *to;
    bool  times, any;
} JsonReport;

static void report_json_stages(JsonReport *j, const Stage *s)
{
    for (; s; s = s->next) {
        if (!s->pass) {
            report_json_stages(j, s->body);
            continue;
        }
        fprintf(j->to, "%s\n  {\"pass\": \"%s\", \"runs\": %lld, \"changed\": %lld, \"rewrites\": %lld", j->any ? "," : "",
                s->pass->name, (long long)s->runs, (long long)s->changes, (long long)s->rewrites);
        if (j->times)
            fprintf(j->to, ", \"ms\": %.3f", 1e3 * s->seconds);
        fputc('}', j->to);
        j->any = true;
    }
}

void report_stages(const Run *r, const Stage *stages)
{
    if (r->o->stats_json) {
        JsonReport j = {.to = r->log, .times = r->o->time_passes};
        fputs("{\"passes\": [", r->log);
        report_json_stages(&j, stages);
        fputs("]}\n", r->log);
        return;
    }
    if (r->o->time_passes) {
        double total = total_seconds(stages);
        fprintf(r->log, "%10.3f ms  all passes\n", 1e3 * total);
        report_times(r->log, stages, total);
    }
    if (r->o->stats)
        report_stats(r->log, stages);
}

