/* The report: everything measured is in it, nothing from a file becomes markup, curves stay in
 * their frame. */
#include "runtime/train/report.h"
#include "runtime/base/file.h"
#include "runtime/train/report_plot.h"
#include "tests/check.h"
#include "tests/store/folder.h"

#include <math.h>
#include <stdbool.h>

static const struct pnet_report_info nothing;

static void put(const char *file, const char *text)
{
    FILE *f = fopen(in_folder(file), "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) exit(1);
}

/* The page; the caller frees it. */
static char *page(void)
{
    struct pnet_bytes b;
    struct pnet_error e;
    if (pnet_bytes_read(in_folder("report.html"), &b, &e) != PNET_OK) exit(1);
    char *text = strndup((const char *)b.data, b.size);
    pnet_bytes_free(&b);
    if (!text) exit(1);
    return text;
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
    return n;
}

/* Every element that opens closes again, in order. Returns the number of elements, -1 where not. */
static int elements(const char *text)
{
    static const char *const empty[] = {"!doctype", "meta"};
    char open[64][16];
    int depth = 0, seen = 0;
    for (const char *at = text; (at = strchr(at, '<')); at++) {
        bool closing = at[1] == '/';
        char name[16];
        if (sscanf(at + 1 + closing, "%15[!a-z0-9]", name) != 1) return -1;
        const char *end = strchr(at, '>');
        if (!end) return -1;
        seen++;
        bool alone = end[-1] == '/';
        for (int i = 0; i < 2; i++) alone = alone || strcmp(name, empty[i]) == 0;
        if (alone) continue;
        if (closing && (!depth || strcmp(open[--depth], name) != 0)) return -1;
        if (!closing && depth == 64) return -1;
        if (!closing) memcpy(open[depth++], name, sizeof name);
    }
    return depth ? -1 : seen;
}

/* All points of all paths lie within the drawing. */
static bool paths_inside(const char *text)
{
    for (const char *at = text; (at = strstr(at, " d=\"")); at++)
        for (const char *c = at + 4; *c && *c != '"'; c++) {
            double x, y;
            if ((*c == 'M' || *c == 'L') && (sscanf(c + 1, "%lf %lf", &x, &y) != 2 ||
                                                !(x >= 0 && x <= 640 && y >= 0 && y <= 260)))
                return false;
        }
    return true;
}

static void check_small_run(void)
{
    put("metrics.jsonl",
        "{\"epoch\":0,\"step\":1,\"lr\":0.001,\"loss\":2,\"loss.ce\":1.5,\"time_s\":30}\n"
        "{\"epoch\":0,\"step\":2,\"lr\":0.002,\"loss\":null,\"loss.ce\":1.25,\"time_s\":60}\n"
        "\n"
        "{\"epoch\":1,\"step\":3,\"lr\":0.003,\"loss\":0.5,\"loss.ce\":0.25,\"time_s\":180}\n"
        "{\"epoch\":1,\"step\":3,\"val.miou\":0.625,\"val.miou.per_class\":[0.5,null,0.75]}\n"
        "{\"epoch\":1,\"step\":3,\"odd <b>\":7,\"note\":\"text is not drawn\"}\n"
        "{\"epoch\":1,\"step\":4,\"lo");
    put("config.yaml", "data: <script>alert('x')</script> & more\n");
    put("model.pnet", "pnet 1\n# \"a\" < b\n");
    struct pnet_error e;
    CHECKF(pnet_report_write(test_folder, &nothing, &e) == PNET_OK, "%s", e.message);
    char *text = page();
    CHECK(elements(text) > 50);
    CHECK(paths_inside(text));
    CHECK(count(text, "<script") == 0 && count(text, "<b>") == count(text, "</b>"));
    CHECK(strstr(text, "&lt;script&gt;alert('x')&lt;/script&gt; &amp; more"));
    CHECK(strstr(text, "# &quot;a&quot; &lt; b"));
    CHECK(strstr(text, "odd &lt;b&gt;"));
    CHECK(strstr(text, "step 3, epoch 1, 3.0 minutes"));
    /* loss, miou, lr, odd; points: 2 + 3 + 1 + 3 + 1. */
    CHECKF(count(text, "<figure>") == 4, "%d", count(text, "<figure>"));
    CHECKF(count(text, "<circle") == 10, "%d", count(text, "<circle"));
    CHECK(strstr(text, "<td>0.5 <small>at 3</small></td><td>2 <small>at 1</small></td>"));
    CHECK(count(text, "class=\"bar\"") == 3 && strstr(text, "width:75.0%"));
    CHECK(!strstr(text, "http") && !strstr(text, "src=") && !strstr(text, "url("));
    CHECK(!strstr(text, "text is not drawn") && !strstr(text, "nan"));
    free(text);
}

/* How long a training took, in words, of a log with these times. */
static void expect_time(const double *time_s, int lines, const char *words)
{
    struct pnet_error e;
    FILE *f = fopen(in_folder("metrics.jsonl"), "wb");
    if (!f) exit(1);
    for (int i = 0; i < lines; i++)
        fprintf(f, "{\"step\":%d,\"loss\":1,\"time_s\":%g}\n{\"step\":%d,\"val.time_s\":7}\n",
            i + 1, time_s[i], i + 1);
    fclose(f);
    CHECKF(pnet_report_write(test_folder, &nothing, &e) == PNET_OK, "%s", e.message);
    char *text = page();
    CHECKF(strstr(text, words), "no '%s'", words);
    free(text);
}

/* Times count from the start of a process, or of the run. */
static void check_times(void)
{
    double many[1000];
    for (int i = 0; i < 1000; i++) many[i] = 0.244 * (i + 1);
    expect_time(many, 1000, ", 4.1 minutes of training<");
    expect_time((double[]){1, 2, 4.5}, 3, ", 4.5 seconds of training<");
    /* gone on with twice: 40 s, then 60 s, then 20 s */
    expect_time((double[]){20, 40, 10, 60, 20}, 5, ", 2.0 minutes of training<");
    expect_time((double[]){7200, 10800}, 2, ", 3.0 hours of training<");
}

/* The only loss is shown once; of two each is, and all losses in one plot. */
static void check_losses(void)
{
    struct pnet_error e;
    put("metrics.jsonl", "{\"step\":1,\"loss\":2,\"loss.ce\":2}\n"
                         "{\"step\":1,\"val.loss\":3,\"val.ce\":3,\"val.iou\":3}\n"
                         "{\"step\":2,\"loss\":null,\"loss.ce\":null}\n");
    CHECK(pnet_report_write(test_folder, &nothing, &e) == PNET_OK);
    char *text = page();
    CHECK(!strstr(text, "loss.ce") && !strstr(text, "val.ce"));
    CHECK(strstr(text, "<td>loss</td>") && strstr(text, "<td>val.loss</td>") &&
          strstr(text, "<td>val.iou</td>"));
    CHECKF(count(text, "<figure>") == 2, "%d", count(text, "<figure>"));
    free(text);
    put("metrics.jsonl",
        "{\"step\":1,\"loss\":3,\"loss.ce\":2,\"loss.lovasz\":1}\n"
        "{\"step\":1,\"val.loss\":3,\"val.ce\":2,\"val.lovasz\":1,\"val.iou\":0.5}\n");
    CHECK(pnet_report_write(test_folder, &nothing, &e) == PNET_OK);
    text = page();
    CHECK(strstr(text, "<td>loss.ce</td>") && strstr(text, "<td>loss.lovasz</td>") &&
          strstr(text, "<td>val.ce</td>") && strstr(text, "<td>val.lovasz</td>"));
    CHECKF(count(text, "<figure>") == 2, "%d", count(text, "<figure>"));
    free(text);
}

/* What the training knows: facts, and the names of the classes. */
static void check_info(void)
{
    static char *const classes[] = {"wall", "<floor>", "door"};
    static const struct pnet_report_fact facts[] = {
        {"mode", "voxel"}, {"command", "pnetc train 'a & b'"}, {"empty", ""}};
    struct pnet_report_info info = {
        .facts = facts, .fact_count = 3, .classes = classes, .class_count = 3};
    struct pnet_error e;
    put("metrics.jsonl", "{\"step\":3,\"val.iou\":0.6,\"val.iou.per_class\":[0.5,null,0.75]}\n");
    CHECK(pnet_report_write(test_folder, &info, &e) == PNET_OK);
    char *text = page();
    CHECK(strstr(text, "<tr><th>mode</th><td>voxel</td></tr>"));
    CHECK(strstr(text, "<td>pnetc train 'a &amp; b'</td>") && !strstr(text, "empty"));
    CHECK(strstr(text, "<td>wall</td>") && strstr(text, "<td>&lt;floor&gt;</td>"));
    CHECK(elements(text) > 20);
    free(text);
    info.class_count = 2; /* of other labels */
    CHECK(pnet_report_write(test_folder, &info, &e) == PNET_OK);
    text = page();
    CHECK(!strstr(text, "wall") && strstr(text, "<td>2</td>"));
    free(text);
}

enum { TRUE_POINTS = 5000, DRAWN = 1667, MOST_DOTS = 4096 }; /* each third of 5000 */

/* Where the camera sees a point: the cloud is turned by 60 degrees about z, so that the camera stands over the x axis, then
   tilted by 25 degrees about y. */
static void seen(const float p[3], double at[2])
{
    const double turn = 1.0471975511965976, tilt = 0.4363323129985824;
    double x = (double)p[0] * cos(turn) - (double)p[1] * sin(turn);
    at[0] = (double)p[0] * sin(turn) + (double)p[1] * cos(turn);
    at[1] = (double)p[2] * cos(tilt) - x * sin(tilt);
}

/* The dots of the picture that begins at `svg`, by panel: xy[panel][2 * number]. */
static void read_dots(const char *svg, int counts[3], double xy[3][2 * MOST_DOTS])
{
    const char *end = strstr(svg, "</svg>");
    int panel = -1;
    for (int k = 0; k < 3; k++) counts[k] = 0;
    for (const char *at = svg; at < end; at++) {
        if (strncmp(at, "<rect", 5) == 0) panel++;
        if (*at != 'M' || panel < 0 || panel > 2 || counts[panel] == MOST_DOTS) continue;
        double *to = &xy[panel][2 * counts[panel]];
        if (sscanf(at, "M%lf %lfh0", &to[0], &to[1]) == 2) counts[panel]++;
    }
}

/* Some dot of a panel lies at the place, within rounding. */
static bool has_dot(const double *xy, int count, double x, double y)
{
    for (int i = 0; i < count; i++)
        if (fabs(xy[2 * i] - x) < 0.06 && fabs(xy[2 * i + 1] - y) < 0.06) return true;
    return false;
}

/* Three panels, one camera: of the true cloud each third point is drawn, predicted points beyond the frame and those that are
   none are counted. */
static void check_samples(void)
{
    static double xy[3][2 * MOST_DOTS];
    static float truth[3 * TRUE_POINTS];
    static const float prediction[] = {0.25f, -0.5f, 0.125f, 90, 0, 0, 0, NAN, 0, -1, 0.5f, 0.75f};
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, at[2];
    int counts[3];
    for (int i = 0; i < TRUE_POINTS; i++) {
        double a = 0.37 * i, h = (double)i / TRUE_POINTS;
        truth[3 * i] = (float)(1.5 * cos(a) * h);
        truth[3 * i + 1] = (float)(sin(a) * h);
        truth[3 * i + 2] = (float)(2 * h - 0.7);
        seen(truth + 3 * i, at);
        for (int d = 0; d < 2; d++) {
            low[d] = fmin(low[d], at[d]);
            high[d] = fmax(high[d], at[d]);
        }
    }
    const struct pnet_report_sample sample = {
        .name = "<a> & b", .clouds = {{truth, 600}, {prediction, 4}, {truth, TRUE_POINTS}}};
    const struct pnet_report_info info = {.samples = &sample, .sample_count = 1};
    struct pnet_error e;
    put("metrics.jsonl", "{\"step\":3,\"loss\":1}\n");
    CHECK(pnet_report_write(test_folder, &info, &e) == PNET_OK);
    char *text = page();
    CHECK(elements(text) > 20 && strstr(text, "<figcaption>&lt;a&gt; &amp; b</figcaption>"));
    CHECK(strstr(text, ">partial, 600 points<") && strstr(text, ">truth, 5000 points<"));
    CHECK(strstr(text, ">prediction, 4 points, 2 drawn ones beyond the frame<"));
    read_dots(strstr(text, "&amp; b</figcaption>"), counts, xy);
    CHECKF(counts[0] == 600 && counts[1] == 2 && counts[2] == DRAWN, "%d %d %d", counts[0],
        counts[1], counts[2]);
    double scale = 182 / fmax(high[0] - low[0], high[1] - low[1]);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < sample.clouds[k].rows; i += k == 2 ? 3 : 1) {
            if (k == 1 && (i == 1 || i == 2)) continue;
            seen(sample.clouds[k].xyz + 3 * i, at);
            CHECKF(
                has_dot(xy[k], counts[k], 215 * k + 105 + scale * (at[0] - (low[0] + high[0]) / 2),
                    18 + 105 - scale * (at[1] - (low[1] + high[1]) / 2)),
                "cloud %d, point %d", k, (int)i);
        }
    free(text);
    const struct pnet_report_sample empty = {.name = "", .clouds = {{NULL, 0}, {prediction, 4}}};
    CHECK(pnet_report_write(test_folder,
              &(struct pnet_report_info){.samples = &empty, .sample_count = 1}, &e) == PNET_OK);
    text = page();
    CHECK(elements(text) > 20 && strstr(text, ">truth, 0 points<") && !strstr(text, "nan") &&
          !strstr(text, "inf"));
    free(text);
}

/* A long training: curves are thinned, and a resumed part replaces what it repeats. */
static void check_long_run(void)
{
    FILE *f = fopen(in_folder("metrics.jsonl"), "wb");
    if (!f) exit(1);
    for (int step = 1; step <= 20000; step++)
        fprintf(f, "{\"step\":%d,\"loss\":%.6f,\"huge\":%de20}\n", step, 1e4 / step + step % 7,
            12 + step % 2);
    for (int step = 10001; step <= 15000; step++) fprintf(f, "{\"step\":%d,\"loss\":1}\n", step);
    fclose(f);
    struct pnet_error e;
    CHECKF(pnet_report_write(test_folder, &nothing, &e) == PNET_OK, "%s", e.message);
    char *text = page();
    CHECK(elements(text) > 50);
    CHECK(paths_inside(text));
    CHECKF(strlen(text) < 60000, "%zu bytes", strlen(text));
    CHECK(strstr(text, "step 15000") && strstr(text, "(logarithmic)"));
    CHECK(strstr(text, "<td>loss</td><td>1</td>"));
    CHECK(count(text, "class=\"band") == 2);
    free(text);
}

/* One value, no value, values that hardly differ or hardly fit a double. */
static void check_extremes(void)
{
    static const char *const rows[] = {
        "{\"step\":1,\"loss\":1}\n",
        "{\"step\":1,\"loss\":null}\n",
        "{}\n",
        "",
        "{\"loss\":1e20}\n{\"loss\":1.00000000000000016e20}\n",
        "{\"loss\":-1e308}\n{\"loss\":1e308}\n{\"loss\":1e-308}\n",
        "{\"loss\":1e-300}\n{\"loss\":1e300}\n",
        "{\"step\":1e300,\"loss\":1}\n{\"step\":1.1e300,\"loss\":2}\n",
        "{\"val.x.per_class\":[]}\n{\"val.x.per_class\":[null,\"a\",7]}\n",
    };
    struct pnet_error e;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put("metrics.jsonl", rows[i]);
        CHECKF(
            pnet_report_write(test_folder, &nothing, &e) == PNET_OK, "%s: %s", rows[i], e.message);
        char *text = page();
        CHECKF(elements(text) > 10 && !strstr(text, "nan") && !strstr(text, "inf"), "%s", rows[i]);
        CHECKF(paths_inside(text), "%s", rows[i]);
        free(text);
    }
}

static void check_refused(void)
{
    struct pnet_error e;
    put("metrics.jsonl", "{\"step\":1,\"loss\":1}\n");
    CHECK(pnet_report_write(test_folder, &nothing, &e) == PNET_OK);
    char *before = page();
    put("metrics.jsonl", "{\"step\":1}\n{\"step\":\n");
    CHECK(pnet_report_write(test_folder, &nothing, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "metrics.jsonl: line 2"), "%s", e.message);
    put("metrics.jsonl", "[1]\n");
    CHECK(pnet_report_write(test_folder, &nothing, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "line 1: expected an object"), "%s", e.message);
    char *after = page();
    CHECK_STR(after, before);
    free(before);
    free(after);
    CHECK(pnet_report_write(in_folder("missing"), &nothing, &e) == PNET_FAILED);
}

int main(void)
{
    make_folder();
    check_small_run();
    check_times();
    check_losses();
    check_info();
    check_samples();
    check_long_run();
    check_extremes();
    check_refused();
    remove_tree(test_folder);
    return check_end();
}
