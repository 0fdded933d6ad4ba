/* Attention among the rows of a scope. Rows of a tile lie in the lanes of vectors, and the rows of the scope come by in tiles:
   so a row's maximum and sums need nothing from other lanes. Tiles are counted from the beginning of the scope, and what a lane
   computes does not depend on the lanes beside it. */
#include "kernels/cpu/isa/attend.h"
#include "kernels/cpu/isa/vec.h"

enum {
    LANES = PNET_ATTEND_LANES,
    WIDEST = PNET_ATTEND_WIDEST,
    VECTORS = LANES / VECTOR,
    ROWS = 48,    /* of a scope, at a time: a multiple of BLOCK_ROWS */
    PAIR = 2,     /* vectors that a block of registers is wide */
    CHANNELS = 4, /* that a block of registers is high where it sums over rows */
};

extern const struct pnet_attend_isa ISA_NAME(pnet_attend_isa);

/* A place in a scope. */
struct walk {
    const struct pnet_attend_tile *t;
    int64_t bucket;    /* of the scope */
    int64_t next, end; /* places of the sample */
};

static void enter_bucket(struct walk *w)
{
    const struct pnet_scope *p = &w->t->scope;
    int64_t k = pnet_scope_bucket(p, w->bucket);
    w->next = pnet_bucket_begin(p->rows, p->buckets, k);
    w->end = pnet_bucket_begin(p->rows, p->buckets, k + 1);
}

/* Begins at a place of the scope, which is there. */
static struct walk walk_from(const struct pnet_attend_tile *t, int64_t place)
{
    struct walk w = {.t = t};
    enter_bucket(&w);
    while (place >= w.end - w.next) {
        place -= w.end - w.next;
        w.bucket++;
        enter_bucket(&w);
    }
    w.next += place;
    return w;
}

/* The next rows of the scope, at most `most`. Returns how many. */
static int next_rows(struct walk *w, int most, int32_t *row)
{
    const int32_t *order = w->t->a->order;
    int found = 0;
    while (found < most) {
        if (w->next == w->end) {
            if (w->bucket + 1 >= w->t->scope.count) break;
            w->bucket++;
            enter_bucket(w);
        }
        int64_t place = w->t->begin + w->next++;
        row[found++] = order ? order[place] : (int32_t)place;
    }
    return found;
}

/* Puts channels of rows into lanes, times a factor: to[c][lane]. Lanes without a row get 0. */
static void put_lanes(int count, const int32_t *row, const float *from, int64_t stride,
    int32_t width, float factor, float (*to)[LANES])
{
    for (int l = 0; l < LANES; l++)
        for (int32_t c = 0; c < width; c++)
            to[c][l] = l < count ? from[row[l] * stride + c] * factor : 0;
}

/* product[n][lane] = sum over c of at[n][c] b[c][lane], for a multiple of BLOCK_ROWS rows. */
static void products(
    int count, int32_t width, const float *const *at, float (*b)[LANES], float (*product)[LANES])
{
    for (int n = 0; n < count; n += BLOCK_ROWS)
        for (int v = 0; v < LANES; v += PAIR * VECTOR) {
            vec sum[BLOCK_ROWS][PAIR];
            UNROLL
            for (int r = 0; r < BLOCK_ROWS; r++) sum[r][0] = sum[r][1] = vec_set(0);
            for (int32_t c = 0; c < width; c++) {
                vec b0 = vec_load(b[c] + v), b1 = vec_load(b[c] + v + VECTOR);
                UNROLL
                for (int r = 0; r < BLOCK_ROWS; r++) {
                    vec a = vec_set(at[n + r][c]);
                    sum[r][0] = vec_madd(a, b0, sum[r][0]);
                    sum[r][1] = vec_madd(a, b1, sum[r][1]);
                }
            }
            UNROLL
            for (int r = 0; r < BLOCK_ROWS; r++) {
                vec_store(product[n + r] + v, sum[r][0]);
                vec_store(product[n + r] + v + VECTOR, sum[r][1]);
            }
        }
}

/* total[c][lane] = scale[lane] total[c][lane] + sum over n of at[n][c] w[n][lane]; the sum is formed first. scale NULL: 1. */
static void add_sums(int count, int32_t width, const float *const *at, float (*w)[LANES],
    const float *scale, float (*total)[LANES])
{
    for (int32_t c = 0; c < width; c += CHANNELS)
        for (int v = 0; v < LANES; v += PAIR * VECTOR) {
            vec sum[CHANNELS][PAIR];
            UNROLL
            for (int k = 0; k < CHANNELS; k++) sum[k][0] = sum[k][1] = vec_set(0);
            for (int n = 0; n < count; n++) {
                vec w0 = vec_load(w[n] + v), w1 = vec_load(w[n] + v + VECTOR);
                UNROLL
                for (int k = 0; k < CHANNELS; k++) {
                    vec a = vec_set(at[n][c + k]);
                    sum[k][0] = vec_madd(a, w0, sum[k][0]);
                    sum[k][1] = vec_madd(a, w1, sum[k][1]);
                }
            }
            UNROLL
            for (int k = 0; k < CHANNELS; k++) {
                UNROLL
                for (int p = 0; p < PAIR; p++) {
                    float *to = total[c + k] + v + p * VECTOR;
                    vec factor = scale ? vec_load(scale + v + p * VECTOR) : vec_set(1);
                    vec_store(to, vec_madd(factor, vec_load(to), sum[k][p]));
                }
            }
        }
}

/* Where the channels of a head lie. */
struct layout {
    int64_t in, out; /* channels of a row */
    int64_t q, k, v, o;
    int32_t width;
    float scale; /* of products: powers of 2 follow, not of e */
};

static struct layout layout_of(const struct pnet_attend_tile *t)
{
    int64_t width = t->a->width, all = width * t->a->heads, head = width * t->head;
    const double log2_e = 1.4426950408889634;
    return (struct layout){3 * all, all, head, all + head, 2 * all + head, head, t->a->width,
        (float)((double)t->a->scale * log2_e)};
}

/* Rows of a scope, as they come by. */
struct passing {
    struct walk walk;
    int count, padded; /* padded: to whole blocks, by the last row */
    int32_t row[ROWS];
    const float *at[2][ROWS]; /* channels of two matrices */
};

static bool pass(struct passing *p)
{
    p->count = next_rows(&p->walk, ROWS, p->row);
    p->padded = (p->count + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    for (int n = p->count; n < p->padded; n++) p->row[n] = p->row[p->count - 1];
    return p->count > 0;
}

static void look_at(struct passing *p, int which, const float *from, int64_t stride)
{
    for (int n = 0; n < p->padded; n++) p->at[which][n] = from + p->row[n] * stride;
}

/* A lane's largest product so far, and the sum of powers relative to it. */
struct running {
    _Alignas(64) float top[LANES], sum[LANES], scale[LANES];
};

/* Turns products into powers relative to the largest one so far. */
static void soften(int count, float (*s)[LANES], struct running *run)
{
    for (int v = 0; v < LANES; v += VECTOR) {
        vec before = vec_load(run->top + v), top = before, sum = vec_set(0);
        for (int n = 0; n < count; n++) top = vec_max(top, vec_load(s[n] + v));
        vec scale = vec_power2(before - top);
        for (int n = 0; n < count; n++) {
            vec p = vec_power2(vec_load(s[n] + v) - top);
            vec_store(s[n] + v, p);
            sum += p;
        }
        vec_store(run->top + v, top);
        vec_store(run->scale + v, scale);
        vec_store(run->sum + v, vec_madd(vec_load(run->sum + v), scale, sum));
    }
}

static void forward(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x)
{
    struct layout o = layout_of(t);
    _Alignas(64) float q[WIDEST][LANES], s[ROWS][LANES], sum[WIDEST][LANES];
    struct running run;
    int32_t row[LANES];
    struct walk own = walk_from(t, t->first);
    int count = next_rows(&own, LANES, row);
    put_lanes(count, row, x->qkv + o.q, o.in, o.width, o.scale, q);
    memset(sum, 0, (size_t)o.width * sizeof sum[0]);
    for (int l = 0; l < LANES; l++) {
        run.top[l] = -3e38f;
        run.sum[l] = 0;
    }
    struct passing p = {.walk = walk_from(t, 0)};
    while (pass(&p)) {
        look_at(&p, 0, x->qkv + o.k, o.in);
        look_at(&p, 1, x->qkv + o.v, o.in);
        products(p.padded, o.width, p.at[0], q, s);
        soften(p.count, s, &run);
        add_sums(p.count, o.width, p.at[1], s, run.scale, sum);
    }
    for (int l = 0; l < count; l++) {
        float *to = x->to_out + row[l] * o.out + o.o;
        for (int32_t c = 0; c < o.width; c++) to[c] = sum[c][l] / run.sum[l];
        if (x->to_log_sum)
            x->to_log_sum[(int64_t)row[l] * t->a->heads + t->head] = run.top[l] + log2f(run.sum[l]);
    }
}

/* Products of floats are exact in double, so the sum does not depend on what a compiler contracts. */
static float dot(int32_t width, const float *a, const float *b)
{
    double sum = 0;
    for (int32_t c = 0; c < width; c++) sum += (double)a[c] * (double)b[c];
    return (float)sum;
}

/* D of a row. */
static float gain_of(const struct layout *o, const struct pnet_attend_arrays *x, int32_t row)
{
    return dot(o->width, x->gout + row * o->out + o->o, x->out + row * o->out + o->o);
}

static void write_lanes(int count, const int32_t *row, int64_t stride, int32_t width, float factor,
    float (*from)[LANES], bool add, float *to)
{
    for (int l = 0; l < count; l++)
        for (int32_t c = 0; c < width; c++) {
            float *at = to + row[l] * stride + c;
            *at = add ? *at + factor * from[c][l] : factor * from[c][l];
        }
}

static void queries(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x)
{
    struct layout o = layout_of(t);
    _Alignas(64) float q[WIDEST][LANES], g[WIDEST][LANES], s[ROWS][LANES], d[ROWS][LANES],
        sum[WIDEST][LANES], log_sum[LANES] = {0}, gain[LANES] = {0};
    int32_t row[LANES];
    struct walk own = walk_from(t, t->first);
    int count = next_rows(&own, LANES, row);
    put_lanes(count, row, x->qkv + o.q, o.in, o.width, o.scale, q);
    put_lanes(count, row, x->gout + o.o, o.out, o.width, 1, g);
    memset(sum, 0, (size_t)o.width * sizeof sum[0]);
    for (int l = 0; l < count; l++) {
        log_sum[l] = x->log_sum[(int64_t)row[l] * t->a->heads + t->head];
        gain[l] = gain_of(&o, x, row[l]);
    }
    struct passing p = {.walk = walk_from(t, 0)};
    while (pass(&p)) {
        look_at(&p, 0, x->qkv + o.k, o.in);
        look_at(&p, 1, x->qkv + o.v, o.in);
        products(p.padded, o.width, p.at[0], q, s);
        products(p.padded, o.width, p.at[1], g, d);
        for (int v = 0; v < LANES; v += VECTOR) {
            vec less = vec_load(log_sum + v), mean = vec_load(gain + v);
            for (int n = 0; n < p.count; n++)
                vec_store(
                    s[n] + v, vec_power2(vec_load(s[n] + v) - less) * (vec_load(d[n] + v) - mean));
        }
        add_sums(p.count, o.width, p.at[0], s, NULL, sum);
    }
    write_lanes(count, row, o.in, o.width, t->a->scale, sum, x->add, x->gqkv + o.q);
}

static void keys(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x)
{
    struct layout o = layout_of(t);
    _Alignas(64) float k[WIDEST][LANES], v[WIDEST][LANES], s[ROWS][LANES], d[ROWS][LANES],
        gk[WIDEST][LANES], gv[WIDEST][LANES];
    int32_t row[LANES];
    struct walk own = walk_from(t, t->first);
    int count = next_rows(&own, LANES, row);
    put_lanes(count, row, x->qkv + o.k, o.in, o.width, o.scale, k);
    put_lanes(count, row, x->qkv + o.v, o.in, o.width, 1, v);
    memset(gk, 0, (size_t)o.width * sizeof gk[0]);
    memset(gv, 0, (size_t)o.width * sizeof gv[0]);
    struct passing p = {.walk = walk_from(t, 0)};
    while (pass(&p)) {
        look_at(&p, 0, x->qkv + o.q, o.in);
        look_at(&p, 1, x->gout + o.o, o.out);
        products(p.padded, o.width, p.at[0], k, s);
        products(p.padded, o.width, p.at[1], v, d);
        for (int n = 0; n < p.count; n++) {
            vec less = vec_set(x->log_sum[(int64_t)p.row[n] * t->a->heads + t->head]),
                mean = vec_set(gain_of(&o, x, p.row[n]));
            for (int l = 0; l < LANES; l += VECTOR) {
                vec share = vec_power2(vec_load(s[n] + l) - less);
                vec_store(s[n] + l, share);
                vec_store(d[n] + l, share * (vec_load(d[n] + l) - mean));
            }
        }
        add_sums(p.count, o.width, p.at[1], s, NULL, gv);
        add_sums(p.count, o.width, p.at[0], d, NULL, gk);
    }
    write_lanes(count, row, o.in, o.width, t->a->scale, gk, x->add, x->gqkv + o.k);
    write_lanes(count, row, o.in, o.width, 1, gv, x->add, x->gqkv + o.v);
}

const struct pnet_attend_isa ISA_NAME(pnet_attend_isa) = {forward, queries, keys};
