/* Run configs: every key, and the text of every error. */
#include "runtime/train/config.h"
#include "tests/check.h"

#include <unistd.h>

static struct pnet_config *parse(const char *text)
{
    struct pnet_config *c;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_config_parse("runs/t.yaml", text, strlen(text), &c, &e);
    CHECKF(!status && c, "%s", e.message);
    if (!c) exit(1);
    return c;
}

static void expect_bad(const char *text, const char *message)
{
    struct pnet_config *c;
    struct pnet_error e = {.message = "nothing"};
    CHECK(pnet_config_parse("t.yaml", text, strlen(text), &c, &e) == PNET_USAGE && !c);
    CHECK_STR(e.message, message);
}

static void test_defaults(void)
{
    struct pnet_config *c = parse("data: /d\n");
    CHECK_STR(c->data, "/d");
    CHECK(c->epochs == 1 && c->steps == 0 && c->batch_size == 1 && c->accumulate == 1 &&
          c->workers == 1);
    CHECK(c->optimizer.kind == PNET_ADAMW && c->optimizer.beta1 == 0.9 &&
          c->optimizer.beta2 == 0.999);
    CHECK(c->optimizer.eps == 1e-8 && c->schedule.lr == 1e-3 &&
          c->schedule.kind == PNET_SCHEDULE_CONSTANT);
    CHECK(c->seed == 1 && c->cache_bytes == UINT64_C(2) << 30 && !c->drop_last && !c->skip_empty);
    CHECK(c->save_every.epochs == 1 && c->eval_every.epochs == 1 && !c->save_every.steps);
    CHECK(!pnet_augment_any(&c->augment) && !c->max_points && c->optimizer.weight_decay == 0.01 &&
          c->clip_grad == 0);
    CHECK(c->precision == PNET_FP32 && c->weighting == PNET_WEIGHTS_NONE && !c->set_count);
    pnet_config_free(c);
}

static void test_everything(void)
{
    struct pnet_config *c = parse(
        "data: rooms\n"
        "inputs:\n"
        "  cloud:\n"
        "    rgb: {field: [red, green, blue], scale: 1/255, shift: -0.5}\n"
        "    label: label\n"
        "    one: {value: 2}\n"
        "steps: 500\n"
        "batch_size: 4\n"
        "optimizer: {name: sgd, momentum: 0.8, nesterov: yes}\n"
        "lr: 0.002\n"
        "schedule: {name: onecycle, warmup: 10%, div: 10, final_div: 50}\n"
        "weight_decay: 0.02\n"
        "clip_grad: 1.0\n"
        "accumulate: 2\n"
        "class_weights: [1, 2.5]\n"
        "augment:\n"
        "  rotate: [5, 10deg, 180]\n"
        "  scale: [0.9, 1.1]\n"
        "  flip: [x, y]\n"
        "  jitter: 5mm\n"
        "  drop_points: 10%\n"
        "  crop: {points: 20000, radius: 3m}\n"
        "  elastic: [{granularity: 20cm, magnitude: 0.4m}, {granularity: 0.8m, magnitude: 160cm}]\n"
        "  colour: {drop: 0.2, shift: 0.05, jitter: 0.01}\n"
        "max_points: 100000\n"
        "workers: 3\n"
        "cache: 512MiB\n"
        "drop_last: yes\n"
        "skip_empty: true\n"
        "seed: 7\n"
        "precision: bf16\n"
        "save_every: {steps: 100}\n"
        "eval_every: 0\n"
        "set: {v: 5cm, classes: 13}\n");
    CHECK_STR(c->data, "runs/rooms");
    CHECK(c->inputs.count == 3 && c->inputs.sources[0].count == 3);
    CHECK_STR(c->inputs.sources[0].names[2], "blue");
    CHECK(
        fabs(c->inputs.sources[0].scale - 1.0 / 255) < 1e-15 && c->inputs.sources[0].shift == -0.5);
    CHECK(c->inputs.sources[2].count == 0 && c->inputs.sources[2].shift == 2);
    CHECK(c->steps == 500 && !c->epochs && c->batch_size == 4 && c->accumulate == 2 &&
          c->workers == 3);
    CHECK(c->optimizer.kind == PNET_SGD && c->optimizer.momentum == 0.8 && c->optimizer.nesterov);
    const struct pnet_schedule *s = &c->schedule;
    CHECK(s->kind == PNET_SCHEDULE_ONE_CYCLE && fabs(s->warm_fraction - 0.1) < 1e-15);
    CHECK(s->div_factor == 10 && s->final_div_factor == 50 && s->lr == 0.002);
    CHECK(c->optimizer.weight_decay == 0.02 && c->clip_grad == 1 && c->warmup_share == 0);
    CHECK(c->weighting == PNET_WEIGHTS_LIST && c->class_weight_count == 2 &&
          c->class_weights[1] == 2.5);
    const struct pnet_augment *a = &c->augment;
    CHECK(a->rotate == PNET_ROTATE_ANGLES && a->angle_deg[0] == 5 && a->angle_deg[1] == 10);
    CHECK(a->scale[0] == 0.9 && a->scale[1] == 1.1 && a->flip[0] && a->flip[1] && !a->flip[2]);
    CHECK(fabs(a->jitter_m - 0.005) < 1e-15 && fabs(a->drop_points - 0.1) < 1e-15);
    CHECK(a->crop_points == 20000 && a->crop_radius_m == 3 && a->elastic_count == 2);
    CHECK(a->elastic[0].granularity_m == 0.2 && a->elastic[1].magnitude_m == 1.6);
    CHECK(a->colour_drop == 0.2 && a->colour_shift == 0.05 && a->colour_jitter == 0.01);
    CHECK(c->max_points == 100000 && c->cache_bytes == 512u << 20 && c->drop_last && c->skip_empty);
    CHECK(c->seed == 7 && c->precision == PNET_BF16);
    CHECK(c->save_every.steps == 100 && !c->save_every.epochs && !c->eval_every.epochs &&
          !c->eval_every.steps);
    CHECK(c->set_count == 2);
    CHECK_STR(c->sets[0], "v=5cm");
    CHECK_STR(c->sets[1], "classes=13");
    pnet_config_free(c);
}

static void test_short_forms(void)
{
    struct pnet_config *c =
        parse("{data: d, optimizer: sgd, schedule: cosine, class_weights: balanced, "
              "augment: {rotate: xyz, flip: z, elastic: {granularity: 1m, magnitude: 2m}}}");
    CHECK(c->optimizer.kind == PNET_SGD && c->optimizer.momentum == 0.9 &&
          c->schedule.kind == PNET_SCHEDULE_COSINE);
    CHECK(c->weighting == PNET_WEIGHTS_BALANCED && c->augment.rotate == PNET_ROTATE_XYZ &&
          c->augment.flip[2]);
    CHECK(c->augment.elastic_count == 1);
    pnet_config_free(c);
}

/* What schedules share: steps or a share of them to warm up; the order of the keys does not matter.
 */
static void test_schedules(void)
{
    struct pnet_config *c =
        parse("schedule: {name: cosine, warmup: 50, final: 10%}\nlr: 2\ndata: d\n");
    CHECK(c->schedule.warmup_steps == 50 && c->warmup_share == 0 && c->schedule.lr == 2);
    CHECK(fabs(c->schedule.final_lr - 0.2) < 1e-15);
    pnet_config_free(c);
    c = parse("schedule: {name: step, warmup: 5%, every: 3, gamma: 0.5}\ndata: d\n");
    CHECK(!c->schedule.warmup_steps && fabs(c->warmup_share - 0.05) < 1e-15);
    CHECK(c->schedule.every == 3 && c->schedule.gamma == 0.5);
    pnet_config_free(c);
    static const char *const names[] = {"constant", "step", "cosine", "onecycle", "exponential"};
    for (int i = 0; i < PNET_SCHEDULES; i++) {
        struct pnet_error e;
        char text[64];
        snprintf(text, sizeof text, "data: d\nschedule: %s\n", names[i]);
        c = parse(text);
        CHECK(c->schedule.kind == (enum pnet_schedule_kind)i);
        CHECK(!pnet_schedule_check(&c->schedule, &e) && !pnet_optim_check(&c->optimizer, &e));
        pnet_config_free(c);
    }
}

static void test_errors(void)
{
    expect_bad("", "t.yaml:1: run config: expected `key: value` pairs, got nothing");
    expect_bad("lr: 1\n", "t.yaml:1: run config: `data` is missing");
    expect_bad("data: d\nlearning_rate: 1\n", "t.yaml:2: run config: unknown key `learning_rate`");
    expect_bad(
        "data: d\nepoch: 1\n", "t.yaml:2: run config: unknown key `epoch`; did you mean `epochs`?");
    expect_bad("data: d\nlr: 1\nlr: 2\n", "t.yaml:3: the key `lr` is there twice, first in line 2");
    expect_bad("data: d\nepochs: 1\nsteps: 2\n", "t.yaml:3: epochs and steps exclude each other");
    expect_bad("data: d\nbatch_size: 0\n", "t.yaml:2: batch_size: 0 is out of range, 1 to 65536");
    expect_bad("data: d\noptimizer: adaw\n",
        "t.yaml:2: optimizer: `adaw` is not one of sgd, adam, adamw; did you mean `adam`?");
    expect_bad("data: d\noptimizer: {name: adamw, momentum: 0.9}\n",
        "t.yaml:2: adamw: unknown key `momentum`");
    expect_bad("data: d\nschedule: {warmup: 3}\n", "t.yaml:2: schedule: needs a `name`");
    expect_bad("data: d\nschedule: {name: step, every: 0}\n",
        "t.yaml:2: every: 0 is out of range, 1 to 4294967295");
    expect_bad(
        "data: d\nschedule: {name: cosine, gamma: 1}\n", "t.yaml:2: cosine: unknown key `gamma`");
    expect_bad("data: d\naugment: {rotat: z}\n",
        "t.yaml:2: augment: unknown key `rotat`; did you mean `rotate`?");
    expect_bad("data: d\naugment: {flip: [x, x]}\n", "t.yaml:2: flip: x is there twice");
    expect_bad("data: d\naugment: {scale: [2, 1]}\n", "t.yaml:2: scale: from 2 down to 1");
    expect_bad("data: d\naugment: {crop: {}}\n", "t.yaml:2: crop: needs `points` or `radius`");
    expect_bad("data: d\naugment: {elastic: {granularity: 1m}}\n",
        "t.yaml:2: elastic: needs `granularity` and `magnitude`");
    expect_bad("data: d\naugment: {jitter: 5}\n",
        "t.yaml:2: jitter: `5` has no unit: write 5m, 5cm or 5mm");
    expect_bad("data: d\naugment: {crop: {radius: 1e1}}\n",
        "t.yaml:2: radius: `1e1` has no unit: write 1e1m, 1e1cm or 1e1mm");
    expect_bad("data: d\naugment: {elastic: {granularity: 20cm, magnitude: 0.4}}\n",
        "t.yaml:2: magnitude: `0.4` has no unit: write 0.4m, 0.4cm or 0.4mm");
    expect_bad("data: d\naugment: {elastic: {granularity: 2, magnitude: 4cm}}\n",
        "t.yaml:2: granularity: `2` has no unit: write 2m, 2cm or 2mm");
    expect_bad("data: d\naugment:\n  drop_points: 1.5\n",
        "t.yaml:3: drop_points: `1.5` is out of range, 0 to 1");
    expect_bad("data: d\nsave_every: {steps: 1, epochs: 1}\n",
        "t.yaml:2: save_every: needs one of `epochs` and `steps`");
    expect_bad("data: d\ninputs: {cloud: {rgb: {scale: 2}}}\n",
        "t.yaml:2: rgb: needs one of `field` and `value`");
    expect_bad("data: d\ninputs: {cloud: {rgb: {value: 1, scale: 2}}}\n",
        "t.yaml:2: rgb: scale, shift and missing are for fields");
    expect_bad("data: d\ninputs: {cloud: rgb}\n",
        "t.yaml:2: inputs: cloud: expected `field: source` pairs");
    expect_bad("data: d\nset: {'a=b': 1}\n", "t.yaml:2: set: `a=b` is no name");
    expect_bad("data: d\nweights_map: {'a.*': b}\n",
        "t.yaml:2: a.*: both sides have one *, or neither has");
    expect_bad("data: d\nset: [v]\n", "t.yaml:2: set: expected `param: value` pairs");
    struct pnet_config *c;
    struct pnet_error e;
    CHECK(pnet_config_read("/nowhere/t.yaml", &c, &e) == PNET_FAILED && !c);
}

/* Every key of the table is known to the reader, and its default reads as what is the default. */
static void test_keys(void)
{
    const struct pnet_config_key *k;
    struct pnet_config *standard = parse("data: d\n");
    int count = 0;
    for (; (k = pnet_config_key(count)); count++) {
        char text[256];
        CHECK(k->help[0]);
        if (!k->standard[0]) continue;
        snprintf(text, sizeof text, "data: d\n%s: %s\n", k->name, k->standard);
        struct pnet_config *c = parse(text);
        CHECK(c->epochs == standard->epochs && c->batch_size == standard->batch_size &&
              c->schedule.lr == standard->schedule.lr);
        CHECK(c->optimizer.kind == standard->optimizer.kind);
        CHECK(
            c->schedule.kind == standard->schedule.kind && c->cache_bytes == standard->cache_bytes);
        CHECK(c->workers == standard->workers && c->seed == standard->seed);
        CHECK(c->save_every.epochs == 1 && c->eval_every.epochs == 1);
        pnet_config_free(c);
    }
    CHECK(count == 37 && !pnet_config_key(-1));
    pnet_config_free(standard);
}

static char *print(const struct pnet_config *c)
{
    char *text = pnet_config_print(c, (const char *const *)c->sets, c->set_count);
    if (!text) exit(1);
    return text;
}

/* Member by member: what lies between them is anything. */

static bool same_optimizer(const struct pnet_optim *a, const struct pnet_optim *b)
{
    return a->kind == b->kind && a->momentum == b->momentum && a->nesterov == b->nesterov &&
           a->beta1 == b->beta1 && a->beta2 == b->beta2 && a->eps == b->eps &&
           a->weight_decay == b->weight_decay && a->decay_all == b->decay_all;
}

static bool same_schedule(const struct pnet_schedule *a, const struct pnet_schedule *b)
{
    return a->kind == b->kind && a->lr == b->lr && a->warmup_steps == b->warmup_steps &&
           a->every == b->every && a->gamma == b->gamma && a->final_lr == b->final_lr &&
           a->warm_fraction == b->warm_fraction && a->div_factor == b->div_factor &&
           a->final_div_factor == b->final_div_factor;
}

static bool same_augment(const struct pnet_augment *a, const struct pnet_augment *b)
{
    bool same = a->crop_points == b->crop_points && a->crop_radius_m == b->crop_radius_m &&
                a->drop_points == b->drop_points && a->elastic_count == b->elastic_count &&
                a->rotate == b->rotate && a->jitter_m == b->jitter_m &&
                a->colour_drop == b->colour_drop && a->colour_shift == b->colour_shift &&
                a->colour_jitter == b->colour_jitter;
    for (int i = 0; i < a->elastic_count; i++)
        same = same && a->elastic[i].granularity_m == b->elastic[i].granularity_m &&
               a->elastic[i].magnitude_m == b->elastic[i].magnitude_m;
    for (int k = 0; k < 3; k++)
        same = same && a->flip[k] == b->flip[k] && a->angle_deg[k] == b->angle_deg[k];
    return same && a->scale[0] == b->scale[0] && a->scale[1] == b->scale[1];
}

static bool same_interval(struct pnet_interval a, struct pnet_interval b)
{
    return a.steps == b.steps && a.epochs == b.epochs;
}

static bool same_config(const struct pnet_config *a, const struct pnet_config *b)
{
    return a->epochs == b->epochs && a->steps == b->steps && a->batch_size == b->batch_size &&
           same_optimizer(&a->optimizer, &b->optimizer) &&
           same_schedule(&a->schedule, &b->schedule) && a->warmup_share == b->warmup_share &&
           a->clip_grad == b->clip_grad && a->accumulate == b->accumulate &&
           a->weighting == b->weighting && a->class_weight_count == b->class_weight_count &&
           same_augment(&a->augment, &b->augment) && a->max_points == b->max_points &&
           a->workers == b->workers && a->cache_bytes == b->cache_bytes &&
           a->drop_last == b->drop_last && a->skip_empty == b->skip_empty && a->seed == b->seed &&
           a->precision == b->precision && same_interval(a->save_every, b->save_every) &&
           same_interval(a->eval_every, b->eval_every) && a->set_count == b->set_count &&
           a->degrade == b->degrade && a->autotune == b->autotune &&
           a->autotune_all == b->autotune_all && a->without_optimizer == b->without_optimizer &&
           a->memory_bytes == b->memory_bytes && a->threads == b->threads &&
           a->inputs.count == b->inputs.count && a->freeze.count == b->freeze.count &&
           a->rates.count == b->rates.count && a->weights_map.count == b->weights_map.count &&
           !a->weights == !b->weights;
}

/* What is printed reads as the same config, and prints as the same text. */
static void test_print(void)
{
    static const char everything[] =
        "data: /d\ninputs:\n  cloud:\n    rgb: {field: [red, 'g r', \"{b}\"], scale: 1/255, shift: "
        "-0.5}\n"
        "    one: {value: 2}\nsteps: 500\nbatch_size: 4\n"
        "optimizer: {name: sgd, momentum: 0.8, nesterov: yes}\nlr: 0.002\n"
        "schedule: {name: onecycle, warmup: 10%, div: 10, final_div: 50}\nweight_decay: 0.02\n"
        "clip_grad: 1.0\naccumulate: 2\nclass_weights: [1, 2.5]\n"
        "augment:\n  rotate: [5, 10deg, 180]\n  scale: [0.9, 1.1]\n  flip: [x, y]\n  jitter: 5mm\n"
        "  elastic: [{granularity: 20cm, magnitude: 0.4m}, {granularity: 0.8m, magnitude: 1.6m}]\n"
        "max_points: 1000\nworkers: 3\ncache: 512MiB\ndrop_last: yes\nskip_empty: yes\nseed: 9\n"
        "precision: bf16\nsave_every: {steps: 3}\neval_every: 0\nset: {v: 5cm, 'w': 'null'}\n"
        "mode: native\ndegrade: [kernel, centre]\ndevice: 'cuda:1'\nalgo: im2col\nautotune: 2.5\n"
        "autotune_all: yes\nwithout_optimizer: yes\nmemory: 2GiB\nthreads: 3\nversion: 0.0.1\n";
    static const char finetuned[] =
        "data: /d\nweights: /w\nweights_map: {a: b.c, '*.x': 'y.*'}\nfreeze: [net.a, '*.bn']\n"
        "rates: {net.b: 0.1, '*': 2}\n";
    /* a key that YAML takes with a sign in front of it alone, once its quotes are escaped */
    char long_key[1100] = "data: /d\ninputs:\n  ";
    size_t begin = strlen(long_key);
    memset(long_key + begin, '\"', 900);
    long_key[begin] = 'k';
    strcpy(long_key + begin + 900, ":\n    rgb: label\n");
    const char *const texts[] = {long_key, "data: /d\n",
        "data: \"/a b/\\\"c\\\"/\\u00e9\\n: #\"\nsteps: 5\n", everything, finetuned,
        "data: /d\nmode: voxel\nepochs: 7\nweight_decay: 0\noptimizer: adam\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct pnet_config *c = parse(texts[i]);
        char *text = print(c);
        struct pnet_config *again = parse(text);
        char *text_again = print(again);
        CHECK_STR(text_again, text);
        CHECK_STR(again->data, c->data);
        CHECKF(same_config(c, again), "%s", text);
        free(text);
        free(text_again);
        pnet_config_free(c);
        pnet_config_free(again);
    }
    struct pnet_config *c = parse("data: ../d\n"); /* of runs/t.yaml */
    char *text = print(c), want[5000], here[4096];
    snprintf(want, sizeof want, "data: %s/runs/../d\n", getcwd(here, sizeof here));
    CHECKF(strncmp(text, want, strlen(want)) == 0, "%s", text);
    free(text);
    pnet_config_free(c);
}

struct difference {
    char text[1000];
};

static void note(void *context, const char *key, const char *was, const char *now)
{
    struct difference *d = context;
    size_t n = strlen(d->text);
    snprintf(d->text + n, sizeof d->text - n, "%s|%s|%s;", key, was, now);
}

static void test_compare(void)
{
    struct pnet_error e;
    struct difference d = {""};
    struct pnet_config *a = parse("data: /a\nlr: 0.01\nsteps: 4\naugment: {rotate: z}\n");
    struct pnet_config *b = parse("data: /b\nlr: 0.02\nepochs: 4\naugment: { rotate: 'z' }\n");
    char *was = print(a), *now = print(b);
    CHECK(!pnet_config_compare("was", was, was, note, &d, &e));
    CHECK_STR(d.text, "");
    CHECK(!pnet_config_compare("was", was, now, note, &d, &e));
    CHECK_STR(d.text, "data|/a|/b;epochs||4;steps|4|;lr|0.01|0.02;");
    d.text[0] = '\0'; /* a config of a user: its data set lies relative to another folder */
    CHECK(!pnet_config_compare("was", "data: rooms\nlr: 1\n", now, note, &d, &e));
    CHECK_STR(d.text, "epochs|1|4;lr|1|0.02;augment|{}|{rotate: z};");
    CHECK(pnet_config_compare("old/config.yaml", "dota: 1\n", now, note, &d, &e) == PNET_USAGE);
    CHECKF(strstr(e.message, "old/config.yaml:1: "), "%s", e.message);
    free(was);
    free(now);
    pnet_config_free(a);
    pnet_config_free(b);
}

int main(void)
{
    test_print();
    test_compare();
    test_defaults();
    test_everything();
    test_short_forms();
    test_schedules();
    test_errors();
    test_keys();
    return check_end();
}
