#include "compiler/cli/cli.h"
#include "runtime/plan/mode.h"

#include "runtime/base/guard.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pnet_cli_notice(const char *format, ...)
{
    char text[2048], shown[4096];
    va_list args;
    va_start(args, format);
    pnet_number_vformat(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "pnetc: %s\n", pnet_printable(text, shown, sizeof shown));
}

int pnet_cli_complain(const struct pnet_error *e)
{
    fprintf(stderr, "pnetc: %s\n", e->message); /* it is printable, and may have several lines */
    return (int)e->status;
}

int pnet_cli_out_of_memory(void)
{
    struct pnet_error e;
    pnet_error_memory(&e);
    return pnet_cli_complain(&e);
}

int pnet_cli_usage_error(const char *format, ...)
{
    struct pnet_error e;
    va_list args;
    va_start(args, format);
    pnet_error_vset(&e, PNET_USAGE, format, args);
    va_end(args);
    return pnet_cli_complain(&e);
}

static void print_option(const struct option *o)
{
    char left[64];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
        o->letter ? ", " : "   ", o->name, o->argument && o->type != OPT_SECONDS ? " " : "",
        o->argument ? o->argument : "");
    printf("  %-26s  %s\n", left, o->help);
}

static void print_usage(const struct usage *u, const struct option *options, int count)
{
    printf("usage: %s\n\n%s\n\noptions:\n", u->synopsis, u->text);
    for (int i = 0; i < count; i++) print_option(&options[i]);
    puts("  -h, --help                  this text");
    if (u->examples) printf("\nexamples:\n%s", u->examples);
}

static bool parse_size(const char *text, size_t *bytes)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1}, {"B", 1}, {"k", 1e3}, {"kB", 1e3}, {"KB", 1e3}, {"KiB", 0x1p10},
        {"M", 1e6}, {"MB", 1e6}, {"MiB", 0x1p20}, {"G", 1e9}, {"GB", 1e9}, {"GiB", 0x1p30},
        {"TB", 1e12}, {"TiB", 0x1p40}};
    char *end;
    double x = pnet_number_read(text, &end);
    if (end == text || !(x >= 0) || strpbrk(text, "xX")) return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0 && x * units[i].factor >= 1 &&
            x * units[i].factor < 9e18) {
            *bytes = (size_t)(x * units[i].factor);
            return true;
        }
    return false;
}

/* Reads 12, -3, 2M, 1.5k or 1e6. Returns false if it is not a whole number. */
static bool parse_count(const char *text, int64_t *count)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    if (!(*digits >= '0' && *digits <= '9') && *digits != '.') return false;
    errno = 0;
    *count = strtoll(text, &end, 10);
    if (!*end && !errno) return true;
    double x = pnet_number_read(text, &end);
    if (end == text || strpbrk(text, "xX")) return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0) {
            double value = x * units[i].factor, whole = round(value);
            /* decimal fractions are not exact in binary */
            if (!(fabs(whole) < 9e18) || fabs(value - whole) > 1e-15 * fabs(value)) return false;
            *count = (int64_t)whole;
            return true;
        }
    return false;
}

/* Reads a length with a unit, such as 20cm. */
static bool parse_length(const char *text, double *metres)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"m", 1}, {"cm", 0.01}, {"mm", 0.001}, {"km", 1000}};
    char *end;
    double x = pnet_number_read(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && end != text; i++)
        if (strcmp(end, units[i].unit) == 0 && x > 0 && x * units[i].factor < 1e6) {
            *metres = x * units[i].factor;
            return true;
        }
    return false;
}

static int store_count(const struct option *o, const char *value)
{
    const struct count *range = o->target;
    long long least = range->least, most = range->most;
    int64_t given;
    if (parse_count(value, &given) && given >= least && given <= most) {
        *range->value = given;
        return 0;
    }
    if (most == INT64_MAX)
        return pnet_cli_usage_error(
            "--%s takes a whole number, %lld or more, such as 1000, 2M or 1e6, not '%s'", o->name,
            least, value);
    if (most == least + 1)
        return pnet_cli_usage_error("--%s is %lld or %lld, not '%s'", o->name, least, most, value);
    return pnet_cli_usage_error(
        "--%s takes a whole number from %lld to %lld, not '%s'", o->name, least, most, value);
}

/* Tells whether the first n bytes of the text are one of the names. */
static bool is_name(const char *text, size_t n, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == n && memcmp(*names, text, n) == 0) return true;
    return false;
}

/* Writes "a, b or c", or with another word for "or". */
static const char *list_names(const char *const *names, const char *last, char text[512])
{
    size_t n = 0;
    for (int i = 0; names[i] && n < 512; i++)
        n += (size_t)snprintf(text + n, 512 - n, "%s%s",
            !i             ? ""
            : names[i + 1] ? ", "
                           : last,
            names[i]);
    return text;
}

static int store_choice(const struct option *o, const char *value)
{
    const struct choice *c = o->target;
    char names[512];
    const char *p = value;
    *c->value = value;
    if (o->type == OPT_WORD) return 0;
    if (o->type == OPT_CHOICE)
        return is_name(value, strlen(value), c->names)
                   ? 0
                   : pnet_cli_usage_error("--%s is %s, not '%s'", o->name,
                         list_names(c->names, " or ", names), value);
    while (*p) {
        size_t n = strcspn(p, ",");
        if (!is_name(p, n, c->names))
            return pnet_cli_usage_error("--%s takes %s, with commas between, not '%s'", o->name,
                list_names(c->names, " and ", names), value);
        p += n + (p[n] == ',');
    }
    return 0;
}

static int store(const struct option *o, const char *value)
{
    char *end;
    switch (o->type) {
    case OPT_FLAG: *(bool *)o->target = true; return 0;
    case OPT_TEXT:
    case OPT_OUTPUT: *(const char **)o->target = value; return 0;
    case OPT_LIST: {
        struct text_list *list = o->target;
        if (list->count == TEXT_LIST_MOST)
            return pnet_cli_usage_error("--%s: at most %d", o->name, TEXT_LIST_MOST);
        list->items[list->count++] = value;
        return 0;
    }
    case OPT_COUNT: return store_count(o, value);
    case OPT_LENGTH:
        if (!parse_length(value, o->target))
            return pnet_cli_usage_error("--%s takes a length such as 20cm, more than 0 and "
                                        "less than 1000 km, not '%s': "
                                        "lengths have a unit",
                o->name, value);
        return 0;
    case OPT_BYTES:
        if (!parse_size(value, o->target))
            return pnet_cli_usage_error(
                "--%s takes a size such as 8GiB, one byte or more, not '%s'", o->name, value);
        return 0;
    case OPT_SECONDS: {
        struct seconds *s = o->target;
        s->given = true;
        if (!value) return 0;
        s->value = pnet_number_read(value, &end);
        if (end == value || *end || !(s->value > 0 && s->value < 1e6))
            return pnet_cli_usage_error(
                "--%s takes a number of seconds, not '%s': more than 0 and less than 1000000",
                o->name, value);
        return 0;
    }
    case OPT_CHOICE:
    case OPT_CHOICES:
    case OPT_WORD: return store_choice(o, value);
    }
    return 0;
}

static const struct option *find_option(
    const struct option *options, int count, const char *word, size_t length)
{
    for (int i = 0; i < count; i++) {
        bool is_long = word[1] == '-' && strlen(options[i].name) == length - 2 &&
                       memcmp(word + 2, options[i].name, length - 2) == 0;
        bool is_short = word[1] != '-' && length == 2 && word[1] == options[i].letter;
        if (is_long || is_short) return &options[i];
    }
    return NULL;
}

static int unknown_option(const struct option *options, int count, const char *word)
{
    const char *names[64];
    for (int i = 0; i < count && i < 64; i++) names[i] = options[i].name;
    const char *near =
        strlen(word) > 2 ? pnet_nearest(word + 2, names, count < 64 ? count : 64) : NULL;
    return near ? pnet_cli_usage_error("no option %s: did you mean --%s?", word, near)
                : pnet_cli_usage_error("no option %s: see --help", word);
}

/* So that they are refused before anything is written, however late they are opened. */
static int announce_outputs(const struct option *options, int count)
{
    struct pnet_error e;
    for (int i = 0; i < count; i++) {
        const char *path = options[i].type == OPT_OUTPUT ? *(const char **)options[i].target : NULL;
        if (path && pnet_guard_output(path, &e)) return pnet_cli_complain(&e);
    }
    return 0;
}

int pnet_cli_parse_options(int argc, char **argv, const struct option *options, int option_count,
    const struct usage *usage, const char **words, int max_words, int *word_count, bool *done)
{
    bool plain = false; /* after -- */
    *word_count = 0;
    *done = false;
    for (int i = 0; i < argc; i++) {
        const char *w = argv[i];
        if (plain || w[0] != '-' || !w[1]) {
            if (*word_count == max_words)
                return pnet_cli_usage_error(
                    "'%s' is one argument too many; usage: %s", w, usage->synopsis);
            words[(*word_count)++] = w;
            continue;
        }
        if (strcmp(w, "--") == 0) {
            plain = true;
            continue;
        }
        if (strcmp(w, "--help") == 0 || strcmp(w, "-h") == 0) {
            print_usage(usage, options, option_count);
            *done = true;
            return 0;
        }
        if (strcmp(w, "--help=table") == 0) {
            pnet_cli_print_table(usage, options, option_count);
            *done = true;
            return 0;
        }
        const char *equals = w[1] == '-' ? strchr(w, '=') : NULL;
        const struct option *o =
            find_option(options, option_count, w, equals ? (size_t)(equals - w) : strlen(w));
        if (!o) return unknown_option(options, option_count, w);
        if (o->type == OPT_FLAG && equals)
            return pnet_cli_usage_error("--%s takes no value", o->name);
        const char *value = equals ? equals + 1 : NULL;
        if (o->type != OPT_FLAG && o->type != OPT_SECONDS && !value) {
            if (i + 1 == argc)
                return pnet_cli_usage_error("--%s needs a value: %s", o->name, o->argument);
            value = argv[++i];
        }
        int code = store(o, value);
        if (code) return code;
    }
    return announce_outputs(options, option_count);
}

/* Returns the place of one of the names. */
static int place_of(const char *name, const char *const *names)
{
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0) i++;
    return i;
}

enum pnet_status pnet_cli_device(const struct model_options *m, struct pnet_error *e)
{
    static bool said;
    char why[256];
    enum pnet_status st = pnet_device_check(m->where, e);
    if (!st && !m->quiet && !said && pnet_device_slow(m->where, why, sizeof why)) {
        said = true;
        pnet_cli_notice("--device %s: %s", m->device, why);
    }
    return st;
}

int pnet_cli_check_model_options(struct model_options *m, unsigned *degrade)
{
    *degrade = 0;
    if (m->mode) pnet_mode_parse(m->mode, degrade);
    if (m->degrade) pnet_degrade_parse(m->degrade, degrade);
    struct pnet_error e;
    if (pnet_device_parse(m->device, &m->where, &e)) return pnet_cli_complain(&e);
    if (m->precision)
        m->products = (enum pnet_precision)place_of(m->precision, pnet_precision_names);
    if (m->products != PNET_FP32 && m->where.kind == PNET_CPU)
        return pnet_cli_usage_error(
            "the CPU computes in fp32: --precision %s is for --device cuda", m->precision);
    if (m->algo) pnet_conv_algo_parse(m->algo, &m->sums);
    if (m->products != PNET_FP32 && !pnet_conv_algo_is_usual(m->sums))
        return pnet_cli_usage_error(
            "--algo %s computes in fp32, not with --precision %s", m->algo, m->precision);
    if (m->threads) omp_set_num_threads((int)m->threads);
    return 0;
}

bool pnet_cli_put_set(struct text_list *list, const char *set)
{
    size_t length = strcspn(set, "=");
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->items[i], set, length) == 0 && list->items[i][length] == set[length]) {
            list->items[i] = set;
            return true;
        }
    if (list->count == TEXT_LIST_MOST) return false;
    list->items[list->count++] = set;
    return true;
}

char *pnet_cli_join_sets(const struct text_list *list)
{
    size_t size = 1;
    for (int i = 0; i < list->count; i++) size += strlen(list->items[i]) + 1;
    char *text = calloc(size, 1), *at = text;
    for (int i = 0; i < list->count && text; i++) {
        if (i) *at++ = '\n';
        at = stpcpy(at, list->items[i]);
    }
    return text;
}

size_t pnet_cli_memory_budget(const struct model_options *m)
{
    return m->memory ? m->memory : pnet_device_available(m->where);
}

bool pnet_cli_use_colour(FILE *f)
{
    return !getenv("NO_COLOR") && isatty(fileno(f));
}

struct pnet_compilation *pnet_cli_compile_model(const char *path,
    const struct pnet_compile_options *o, const struct model_options *m, int *code)
{
    struct pnet_compilation *c = pnet_compile_file(path, o);
    if (!c) {
        *code = pnet_cli_out_of_memory();
        return NULL;
    }
    if (pnet_compilation_errors(c) || (pnet_compilation_warnings(c) && !m->quiet))
        pnet_compilation_report(c, stderr, pnet_cli_use_colour(stderr), false);
    struct pnet_error e = {0};
    bool compiled = pnet_compilation_plan(c);
    if (compiled && !pnet_compilation_guard(c, &e)) return c;
    *code = compiled ? pnet_cli_complain(&e) : (int)pnet_compilation_code(c);
    pnet_compilation_free(c);
    return NULL;
}

static volatile sig_atomic_t caught;

/* When a terminal is closed, both the system and the shell send SIGHUP, so a second SIGHUP does not end the process at once. */
static void on_signal(int number)
{
    if (caught && number != SIGHUP) _exit(128 + number);
    if (!caught) caught = number;
}

void pnet_cli_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal}, hangup;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* nohup sets SIGHUP to be ignored, and that stays */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

bool pnet_cli_interrupted(void)
{
    return caught != 0;
}

int pnet_cli_interrupt_code(void)
{
    return caught ? 128 + caught : PNET_INTERRUPTED;
}

void pnet_cli_ignore_closed_pipes(void)
{
    signal(SIGPIPE, SIG_IGN);
}
