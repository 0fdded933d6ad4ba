#include "runtime/train/report.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/number.h"
#include "runtime/train/report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last array of a `val.NAME.per_class`. */
struct classes {
    char *name; /* NAME */
    double *value;
    size_t count;
};

struct run {
    struct pnet_series *series;
    size_t series_count;
    struct classes *classes;
    size_t classes_count;
    double last_step, last_epoch;
    double seconds; /* seconds of earlier processes */
    double time_s;  /* seconds at the last line of the present process */
    size_t lines;
};

static void free_series(struct pnet_series *s)
{
    free(s->name);
    free(s->x);
    free(s->y);
}

static void free_run(struct run *r)
{
    for (size_t i = 0; i < r->series_count; i++) free_series(&r->series[i]);
    for (size_t i = 0; i < r->classes_count; i++) {
        free(r->classes[i].name);
        free(r->classes[i].value);
    }
    free(r->series);
    free(r->classes);
}

/* ---- reading ---- */

/* Returns the series of that name, and adds it if it is new. NULL: out of memory. */
static struct pnet_series *series_of(struct run *r, const char *name)
{
    for (size_t i = 0; i < r->series_count; i++)
        if (strcmp(r->series[i].name, name) == 0) return &r->series[i];
    struct pnet_series *more = realloc(r->series, (r->series_count + 1) * sizeof *more);
    if (!more) return NULL;
    r->series = more;
    struct pnet_series *s = &more[r->series_count];
    *s = (struct pnet_series){.name = strdup(name)};
    if (!s->name) return NULL;
    r->series_count++;
    return s;
}

static bool grow(struct pnet_series *s)
{
    size_t capacity = s->capacity ? 2 * s->capacity : 64;
    double *x = realloc(s->x, capacity * sizeof *x);
    if (x) s->x = x;
    double *y = realloc(s->y, capacity * sizeof *y);
    if (y) s->y = y;
    if (!x || !y) return false;
    s->capacity = capacity;
    return true;
}

static bool add_point(struct run *r, const char *name, double x, double y)
{
    struct pnet_series *s = series_of(r, name);
    if (!s) return false;
    while (s->count && s->x[s->count - 1] >= x) s->count--;
    if (s->count == s->capacity && !grow(s)) return false;
    s->x[s->count] = x;
    s->y[s->count++] = y;
    return true;
}

static double number_of(json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* `key` is "val.NAME.per_class". */
static bool set_classes(struct run *r, const char *key, json_t *array)
{
    size_t length = strlen(key) - strlen(".per_class"), skip = strncmp(key, "val.", 4) ? 0 : 4;
    struct classes *c = NULL;
    for (size_t i = 0; i < r->classes_count && !c; i++)
        if (strncmp(r->classes[i].name, key + skip, length - skip) == 0 &&
            !r->classes[i].name[length - skip])
            c = &r->classes[i];
    if (!c) {
        struct classes *more = realloc(r->classes, (r->classes_count + 1) * sizeof *more);
        if (!more) return false;
        r->classes = more;
        c = &more[r->classes_count];
        *c = (struct classes){.name = strndup(key + skip, length - skip)};
        if (!c->name) return false;
        r->classes_count++;
    }
    double *value = calloc(json_array_size(array) + 1, sizeof *value);
    if (!value) return false;
    free(c->value);
    c->value = value;
    c->count = json_array_size(array);
    for (size_t i = 0; i < c->count; i++) value[i] = number_of(json_array_get(array, i));
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_counter(const char *key)
{
    return strcmp(key, "step") == 0 || strcmp(key, "epoch") == 0 || strcmp(key, "time_s") == 0 ||
           strcmp(key, "val.time_s") == 0;
}

/* Returns false when out of memory. */
static bool read_line(struct run *r, json_t *line)
{
    json_t *step = json_object_get(line, "step");
    double x = json_is_number(step) ? json_number_value(step) : (double)r->lines;
    const char *key;
    json_t *value;
    json_object_foreach(line, key, value)
    {
        if (json_is_array(value) && ends_with(key, ".per_class")) {
            if (!set_classes(r, key, value)) return false;
        } else if ((json_is_number(value) || json_is_null(value)) && !is_counter(key)) {
            if (!add_point(r, key, x, number_of(value))) return false;
        }
    }
    r->last_step = x;
    if (json_is_number(json_object_get(line, "epoch")))
        r->last_epoch = json_number_value(json_object_get(line, "epoch"));
    double seconds = number_of(json_object_get(line, "time_s"));
    if (isfinite(seconds)) {
        if (seconds < r->time_s) r->seconds += r->time_s;
        r->time_s = seconds;
    }
    return true;
}

static enum pnet_status read_metrics(const char *path, struct run *r, struct pnet_error *e)
{
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read_own(path, &b, e);
    if (status != PNET_OK) return status;
    const char *at = (const char *)b.data, *end = at + b.size;
    for (const char *stop; status == PNET_OK && at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break;
        r->lines++;
        if (stop == at) continue;
        char place[4300];
        snprintf(place, sizeof place, "%s: line %zu", path, r->lines);
        json_t *line;
        status = pnet_json_parse(place, at, (size_t)(stop - at), &line, e);
        if (status != PNET_OK) break;
        if (!json_is_object(line))
            status = pnet_error_set(e, PNET_BAD_DATA, "%s: expected an object", place);
        else if (!read_line(r, line))
            status = pnet_error_memory(e);
        json_decref(line);
    }
    pnet_bytes_free(&b);
    return status;
}

/* ---- the page ---- */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<style>\n"
    ":root{--page:#fff;--text:#1d2330;--soft:#667085;--line:#e3e6ec;--box:#f7f8fa;"
    "--c0:#2563eb;--c1:#d9480f;--c2:#2b8a3e;--c3:#9c36b5;--c4:#0b7285;--c5:#c2255c;--c6:#7c6a0a;"
    "--c7:#495057}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#14171d;--text:#e4e7ec;--soft:#98a2b3;"
    "--line:#2c323d;--box:#1b1f27;--c0:#74a7ff;--c1:#ff9f6b;--c2:#69db7c;--c3:#da9bf0;--c4:#66d9e8;"
    "--c5:#faa2c1;--c6:#e5c84b;--c7:#ced4da}}\n"
    "body{background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;"
    "max-width:1360px;margin:0 auto;padding:24px}\n"
    "h1{font-size:22px;margin:0}h2{font-size:17px;margin:32px 0 8px}p{color:var(--soft);margin:4px "
    "0}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:"
    "16px}\n"
    "figure{margin:0;padding:12px;border:1px solid var(--line);border-radius:8px}\n"
    "figcaption{font-weight:600}small,.key{font-weight:400;color:var(--soft);font-size:13px}\n"
    ".key{margin-left:10px;white-space:nowrap}.key::before{content:\"\";display:inline-block;width:"
    "10px;"
    "height:10px;border-radius:2px;margin-right:5px;background:var(--c)}.key b{color:var(--text)}\n"
    "svg{display:block;width:100%;height:auto}svg text{font-size:11px;fill:var(--soft)}\n"
    ".x{text-anchor:middle}.y{text-anchor:end}.grid{stroke:var(--line)}.axis{stroke:var(--soft)}\n"
    ".line{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round}\n"
    ".band{fill:var(--c);opacity:.16}.dot{fill:var(--c)}\n"
    ".dots{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linecap:round}"
    ".frame{fill:none;stroke:var(--line)}\n"
    ".s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}"
    ".s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:4px 14px 4px 0;border-bottom:1px solid var(--line);text-align:right}\n"
    "th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:500}\n"
    ".facts td{text-align:left;white-space:pre-wrap;overflow-wrap:anywhere}.facts "
    "th{vertical-align:top}\n"
    ".bar{display:inline-block;width:80px;height:8px;margin-left:8px;background:var(--line);"
    "border-radius:2px}.bar i{display:block;height:100%;background:var(--c0);border-radius:2px}\n"
    "pre{background:var(--box);border:1px solid var(--line);border-radius:8px;padding:12px;"
    "overflow:auto;font:13px/1.45 ui-monospace,monospace}summary{cursor:pointer}\n"
    "</style>\n";

static void put_title(FILE *out, const char *folder, const struct run *r)
{
    fputs("<title>", out);
    pnet_html_put(out, folder);
    fputs("</title></head><body>\n<h1>", out);
    pnet_html_put(out, folder);
    fprintf(out, "</h1>\n<p>step %.10g, epoch %.10g", r->last_step, r->last_epoch);
    double seconds = r->seconds + r->time_s;
    if (seconds >= 3600)
        fprintf(out, ", %.1f hours of training", seconds / 3600);
    else if (seconds >= 60)
        fprintf(out, ", %.1f minutes of training", seconds / 60);
    else if (seconds > 0)
        fprintf(out, ", %.1f seconds of training", seconds);
    fputs("</p>\n", out);
}

static void put_facts(FILE *out, const struct pnet_report_info *info)
{
    bool any = false;
    for (size_t i = 0; i < info->fact_count; i++) {
        const struct pnet_report_fact *f = &info->facts[i];
        if (!*f->value) continue;
        fputs(any ? "" : "<h2>Run</h2>\n<table class=\"facts\">\n", out);
        any = true;
        fputs("<tr><th>", out);
        pnet_html_put(out, f->name);
        fputs("</th><td>", out);
        pnet_html_put(out, f->value);
        fputs("</td></tr>\n", out);
    }
    if (any) fputs("</table>\n", out);
}

static const struct pnet_series *find_series(const struct run *r, const char *name)
{
    for (size_t i = 0; i < r->series_count; i++)
        if (strcmp(r->series[i].name, name) == 0) return &r->series[i];
    return NULL;
}

/* Losses share one plot; every other series has its own. `val.NAME` is a loss if there is a `loss.NAME`. */
static bool is_loss(const struct run *r, const char *name)
{
    char trained[300];
    bool validation = strncmp(name, "val.", 4) == 0;
    if (validation) name += 4;
    if (strcmp(name, "loss") == 0 || strncmp(name, "loss.", 5) == 0) return true;
    snprintf(trained, sizeof trained, "loss.%s", name);
    return validation && find_series(r, trained);
}

/* Tells whether the series equals the sum of the losses: it is the only loss. */
static bool is_double(const struct run *r, const struct pnet_series *s)
{
    bool validation = strncmp(s->name, "val.", 4) == 0;
    const struct pnet_series *sum = find_series(r, validation ? "val.loss" : "loss");
    if (!sum || s == sum || !is_loss(r, s->name) || s->count != sum->count) return false;
    for (size_t i = 0; i < s->count; i++)
        if (s->x[i] != sum->x[i] || !(s->y[i] == sum->y[i] || (isnan(s->y[i]) && isnan(sum->y[i]))))
            return false;
    return true;
}

/* Returns false if memory is out. */
static bool drop_doubles(struct run *r)
{
    bool *is = calloc(r->series_count + 1, sizeof *is);
    size_t kept = 0;
    if (!is) return false;
    for (size_t i = 0; i < r->series_count; i++) is[i] = is_double(r, &r->series[i]);
    for (size_t i = 0; i < r->series_count; i++) {
        if (is[i])
            free_series(&r->series[i]);
        else
            r->series[kept++] = r->series[i];
    }
    r->series_count = kept;
    free(is);
    return true;
}

static enum pnet_status put_plots(FILE *out, const struct run *r, struct pnet_error *e)
{
    struct pnet_series *losses = calloc(r->series_count + 1, sizeof *losses);
    if (!losses) return pnet_error_memory(e);
    size_t count = 0;
    for (size_t i = 0; i < r->series_count; i++)
        if (is_loss(r, r->series[i].name)) losses[count++] = r->series[i];
    fputs("<div class=\"plots\">\n", out);
    if (count) pnet_plot_put(out, "loss", losses, count);
    /* Series of the validation set come before series of the training. */
    for (int validation = 1; validation >= 0; validation--)
        for (size_t i = 0; i < r->series_count; i++) {
            const struct pnet_series *s = &r->series[i];
            if (is_loss(r, s->name) || (strncmp(s->name, "val.", 4) == 0) != validation) continue;
            pnet_plot_put(out, s->name, s, 1);
        }
    fputs("</div>\n", out);
    free(losses);
    return PNET_OK;
}

static void put_cell(FILE *out, double value, double step)
{
    fputs("<td>", out);
    pnet_html_number(out, value);
    if (isfinite(value)) fprintf(out, " <small>at %.10g</small>", step);
    fputs("</td>", out);
}

static void put_table(FILE *out, const struct run *r)
{
    fputs(
        "<h2>Values</h2>\n<table><tr><th></th><th>last</th><th>lowest</th><th>highest</th></tr>\n",
        out);
    for (size_t i = 0; i < r->series_count; i++) {
        const struct pnet_series *s = &r->series[i];
        size_t low = 0, high = 0;
        for (size_t k = 1; k < s->count; k++) {
            if (s->y[k] < s->y[low] || isnan(s->y[low])) low = k;
            if (s->y[k] > s->y[high] || isnan(s->y[high])) high = k;
        }
        fputs("<tr><td>", out);
        pnet_html_put(out, s->name);
        fputs("</td><td>", out);
        pnet_html_number(out, s->y[s->count - 1]);
        fputs("</td>", out);
        put_cell(out, s->y[low], s->x[low]);
        put_cell(out, s->y[high], s->x[high]);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void put_classes(FILE *out, const struct run *r, const struct pnet_report_info *info)
{
    size_t rows = 0;
    for (size_t i = 0; i < r->classes_count; i++)
        if (r->classes[i].count > rows) rows = r->classes[i].count;
    if (!rows) return;
    fputs("<h2>Classes</h2>\n<table><tr><th>class</th>", out);
    for (size_t i = 0; i < r->classes_count; i++) {
        fputs("<th>", out);
        pnet_html_put(out, r->classes[i].name);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (size_t row = 0; row < rows; row++) {
        fputs("<tr><td>", out);
        if (rows == (size_t)info->class_count)
            pnet_html_put(out, info->classes[row]);
        else
            fprintf(out, "%zu", row);
        fputs("</td>", out);
        for (size_t i = 0; i < r->classes_count; i++) {
            double value = row < r->classes[i].count ? r->classes[i].value[row] : NAN;
            fputs("<td>", out);
            pnet_html_number(out, value);
            fprintf(out, "<span class=\"bar\"><i style=\"width:%.1f%%\"></i></span></td>",
                100 * fmin(fmax(value, 0), 1));
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void put_samples(FILE *out, const struct pnet_report_info *info)
{
    if (!info->sample_count) return;
    fputs("<h2>Samples</h2>\n<p>Validation samples with the last weights: what the model reads, "
          "what it makes of that, and what is true, seen by the same camera.</p>\n"
          "<div class=\"plots\">\n",
        out);
    for (size_t i = 0; i < info->sample_count; i++) pnet_report_sample_put(out, &info->samples[i]);
    fputs("</div>\n", out);
}

/* Writes a file of the run as text, if it exists. */
static enum pnet_status put_file(
    FILE *out, const char *folder, const char *file, struct pnet_error *e)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (access(path, F_OK) != 0) return PNET_OK;
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read_own(path, &b, e);
    if (status != PNET_OK) return status;
    char *text = strndup((const char *)b.data, b.size);
    pnet_bytes_free(&b);
    if (!text) return pnet_error_memory(e);
    fprintf(
        out, "<details open><summary><h2 style=\"display:inline\">%s</h2></summary>\n<pre>", file);
    pnet_html_put(out, text);
    fputs("</pre></details>\n", out);
    free(text);
    return PNET_OK;
}

static enum pnet_status put_page(FILE *out, const char *folder, const struct run *r,
    const struct pnet_report_info *info, struct pnet_error *e)
{
    fputs(head, out);
    put_title(out, folder, r);
    put_facts(out, info);
    if (!r->series_count) fputs("<p>Nothing measured yet.</p>\n", out);
    enum pnet_status status = put_plots(out, r, e);
    if (status != PNET_OK) return status;
    if (r->series_count) put_table(out, r);
    put_classes(out, r, info);
    put_samples(out, info);
    status = put_file(out, folder, "config.yaml", e);
    if (status == PNET_OK) status = put_file(out, folder, "model.pnet", e);
    fputs("</body></html>\n", out);
    return status;
}

enum pnet_status pnet_report_write(
    const char *folder, const struct pnet_report_info *info, struct pnet_error *e)
{
    char path[4200];
    struct run r = {.series = NULL};
    struct pnet_output o;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    enum pnet_status status = read_metrics(path, &r, e);
    if (status != PNET_OK) goto out;
    if (!drop_doubles(&r)) {
        status = pnet_error_memory(e);
        goto out;
    }
    snprintf(path, sizeof path, "%s/report.html", folder);
    status = pnet_output_open(path, &o, e);
    if (status != PNET_OK) goto out;
    locale_t before = pnet_locale_enter();
    status = put_page(o.file, folder, &r, info, e);
    pnet_locale_leave(before);
    if (status == PNET_OK)
        status = pnet_output_commit(&o, e);
    else
        pnet_output_drop(&o);
out:
    free_run(&r);
    return status;
}
