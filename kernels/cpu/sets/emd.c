#include "kernels/emd.h"
#include "kernels/cpu/sets/pairs.h"

#include <float.h>
#include <math.h>

/* A person remembers the objects of least distance + price that its last look at all of them found, with the key of the last
   one. Prices only rise, so the best two of these are the best two of all as long as their keys do not exceed that one: no
   bid differs from that of a look at all objects. Memory of 32 MiB is shared by all persons, within these bounds. */
enum { LEAST_KEYS = 32, MOST_KEYS = 256, ALL_KEYS = 1 << 22, CHUNK = 256 };

enum { SCANS = 16, SERVED = 8 };

enum { SERIAL = 32 /* persons up to whom threads cost more than they save */ };

/* Persons by their row of x, objects by their place in arrays of whole panels. Indices in keys count from the first place of
   the sample. */
struct auction {
    const struct pnet_emd *e;
    const struct pnet_pairs_isa *isa;
    int32_t keep; /* keys that a person remembers */
    /* objects */
    float *at[3], *price, *bid;
    int32_t *holder, *bidder; /* rows of x; -1 */
    /* persons */
    uint64_t *key,
        *cutoff; /* [rows][keep] of (distance, object), ascending; the key of the last: of (distance + price) */
    int32_t *keys, *wants; /* how many keys; the object bid for */
    float *offer;
    int32_t *scans,
        *served; /* of a scaled auction: bids to come that remember nothing, and bids that the last look served */
    int32_t *list, count;   /* persons without an object */
    int32_t *free;          /* [samples]: objects without a holder, once the rounds are over */
    int32_t *phases, *left; /* [samples]: phases behind this one; persons without an object */
    int32_t round;
    size_t bytes;
};

static struct auction lay_out(const struct pnet_emd *e, void *work)
{
    struct pnet_pairs_work w = {work, 0};
    int64_t persons = e->sets.x.rows.most, objects = pnet_pairs_room(&e->sets.y);
    int64_t keys = persons * MOST_KEYS < ALL_KEYS ? persons * MOST_KEYS : ALL_KEYS;
    struct auction a = {.e = e};
    if (keys < persons * LEAST_KEYS) keys = persons * LEAST_KEYS;
    a.keep = persons > 0 ? (int32_t)(keys / persons) : 0;
    for (int k = 0; k < 3; k++) a.at[k] = pnet_pairs_take(&w, objects, sizeof *a.at[k]);
    a.price = pnet_pairs_take(&w, objects, sizeof *a.price);
    a.bid = pnet_pairs_take(&w, objects, sizeof *a.bid);
    a.holder = pnet_pairs_take(&w, objects, sizeof *a.holder);
    a.bidder = pnet_pairs_take(&w, objects, sizeof *a.bidder);
    a.key = pnet_pairs_take(&w, keys, sizeof *a.key);
    a.cutoff = pnet_pairs_take(&w, persons, sizeof *a.cutoff);
    a.keys = pnet_pairs_take(&w, persons, sizeof *a.keys);
    a.wants = pnet_pairs_take(&w, persons, sizeof *a.wants);
    a.offer = pnet_pairs_take(&w, persons, sizeof *a.offer);
    a.scans = pnet_pairs_take(&w, e->scaled ? persons : 0, sizeof *a.scans);
    a.served = pnet_pairs_take(&w, e->scaled ? persons : 0, sizeof *a.served);
    a.list = pnet_pairs_take(&w, persons, sizeof *a.list);
    a.free = pnet_pairs_take(&w, e->sets.x.samples, sizeof *a.free);
    a.phases = pnet_pairs_take(&w, e->sets.x.samples, sizeof *a.phases);
    a.left = pnet_pairs_take(&w, e->sets.x.samples, sizeof *a.left);
    a.bytes = w.bytes;
    return a;
}

size_t pnet_cpu_emd_assign_work(const struct pnet_emd *e)
{
    return lay_out(e, NULL).bytes;
}

/* Is there an assignment? */
static bool can_assign(const struct pnet_set_pair *p, int32_t sample, double diagonal)
{
    int64_t n = pnet_pairs_points(&p->x, sample);
    if (n == 0 || n != pnet_pairs_points(&p->y, sample)) return false;
    return diagonal * diagonal < (double)FLT_MAX / 2;
}

/* How many phases come before the last one. */
static int32_t phases_before(const struct pnet_emd *e, double diagonal)
{
    int32_t k = 0;
    if (!e->scaled) return 0;
    for (double eps = (double)(float)e->eps; eps * PNET_EMD_TIMES <= diagonal / 8; k++)
        eps *= PNET_EMD_TIMES;
    return k;
}

static float eps_of(const struct auction *a, int32_t sample)
{
    float eps = (float)a->e->eps;
    for (int32_t k = 0; k < a->phases[sample]; k++) eps *= PNET_EMD_TIMES;
    return eps;
}

static void begin_sample(struct auction *a, int32_t sample, int32_t *partner)
{
    const struct pnet_point_set *x = &a->e->sets.x, *y = &a->e->sets.y;
    int64_t place = pnet_pairs_begin(y, sample), from = y->splits[sample],
            n = pnet_pairs_points(y, sample), padded = pnet_pairs_padded(y, sample);
    double diagonal = pnet_pairs_points(x, sample) > 0 && n > 0
                          ? pnet_pairs_box(&a->e->sets, sample).diagonal
                          : 0;
    a->phases[sample] = 0;
    for (int64_t i = x->splits[sample]; i < x->splits[sample + 1]; i++) partner[i] = -1;
    if (!can_assign(&a->e->sets, sample, diagonal)) return;
    a->phases[sample] = phases_before(a->e, diagonal);
    a->left[sample] = (int32_t)n;
    for (int64_t j = 0; j < padded; j++) {
        for (int k = 0; k < 3; k++) a->at[k][place + j] = j < n ? y->xyz[3 * (from + j) + k] : 0;
        a->price[place + j] =
            j < n ? 0 : INFINITY; /* padding of the last panel: no person bids for it */
        a->bid[place + j] = -1;
        a->holder[place + j] = a->bidder[place + j] = -1;
    }
    for (int64_t i = x->splits[sample]; i < x->splits[sample + 1]; i++) {
        a->keys[i] = 0;
        a->cutoff[i] = 0;
        if (a->e->scaled) a->scans[i] = a->served[i] = 0;
        a->list[a->count++] = (int32_t)i;
    }
}

/* Moves the `least` smallest of `count` different keys to the front. */
static void select_keys(uint64_t *key, int32_t count, int32_t least)
{
    int32_t first = 0, last = count - 1;
    while (first < last) {
        uint64_t middle = key[first + (last - first) / 2];
        int32_t i = first, j = last;
        while (i <= j) {
            while (key[i] < middle) i++;
            while (key[j] > middle) j--;
            if (i > j) break;
            uint64_t t = key[i];
            key[i++] = key[j];
            key[j--] = t;
        }
        if (least - 1 <= j)
            last = j;
        else if (least - 1 >= i)
            first = i;
        else
            return;
    }
}

static void sift(uint64_t *key, int32_t at, int32_t count)
{
    uint64_t moved = key[at];
    for (int32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && key[child + 1] > key[child]) child++;
        if (key[child] <= moved) break;
        key[at] = key[child];
        at = child;
    }
    key[at] = moved;
}

static void sort_keys(uint64_t *key, int32_t count)
{
    for (int32_t at = count / 2; at-- > 0;) sift(key, at, count);
    for (int32_t end = count - 1; end > 0; end--) {
        uint64_t t = key[0];
        key[0] = key[end];
        key[end] = t;
        sift(key, 0, end);
    }
}

static struct pnet_pair_points points_of(const struct auction *a, int64_t place)
{
    return (struct pnet_pair_points){
        {a->at[0] + place, a->at[1] + place, a->at[2] + place}, a->price + place};
}

/* Drops objects that a lower person holds at the same distance. */
static int32_t drop_held(
    const struct auction *a, int64_t place, int64_t person, int32_t count, uint64_t *key)
{
    int32_t kept = 0;
    for (int32_t k = 0; k < count; k++) {
        int64_t at = place + pnet_pair_index(key[k]);
        if (pnet_pair_number(key[k]) < a->price[at] || person < a->holder[at]) key[kept++] = key[k];
    }
    return kept;
}

/* Looks at all objects of a sample and remembers the least keys: of distance + price, or, where the rest is completed, of the
   distance of those whose holder would lose them. */
static void look(struct auction *a, int64_t person, int64_t place, int32_t padded, bool completing)
{
    const float *x = a->e->sets.x.xyz + 3 * person;
    struct pnet_pair_points y = points_of(a, place);
    uint64_t key[2 * MOST_KEYS + CHUNK], *to = a->key + person * a->keep;
    int32_t count = 0;
    float limit = FLT_MAX;
    bool dropped = false;
    for (int32_t first = 0; first < padded; first += CHUNK) {
        int32_t n = padded - first < CHUNK ? padded - first : CHUNK;
        int32_t found = (completing ? a->isa->keys_up_to : a->isa->keys_of_sums)(
            x, &y, first, n, limit, key + count);
        if (completing) found = drop_held(a, place, person, found, key + count);
        count += found;
        if (count <= a->keep || (count < 2 * a->keep && first + n < padded)) continue;
        select_keys(key, count, a->keep);
        count = a->keep;
        dropped = true;
        uint64_t last = 0;
        for (int32_t k = 0; k < count; k++) last = key[k] > last ? key[k] : last;
        limit = pnet_pair_number(last);
        a->cutoff[person] = last;
    }
    if (!dropped) a->cutoff[person] = UINT64_MAX;
    for (int32_t k = 0; k < count && !completing; k++) {
        int32_t j = pnet_pair_index(key[k]);
        float dx = x[0] - y.at[0][j], dy = x[1] - y.at[1][j], dz = x[2] - y.at[2][j];
        key[k] = pnet_pair_key(sqrtf((dx * dx + dy * dy) + dz * dz), j);
    }
    sort_keys(key, count);
    for (int32_t k = 0; k < count; k++) to[k] = key[k];
    a->keys[person] = count;
}

/* What a person has seen: the object of the least distance + price, and the next larger one. */
struct view {
    uint64_t best;
    float second;
};

static void see(struct view *v, uint64_t key)
{
    if (key < v->best) {
        v->second = v->best == UINT64_MAX ? v->second : pnet_pair_number(v->best);
        v->best = key;
    } else if (pnet_pair_number(key) < v->second) {
        v->second = pnet_pair_number(key);
    }
}

/* Of the objects that serve a person of a scaled auction as well as the best one, the one it takes. */
struct choice {
    float inverse, group; /* trunc((distance + price) * inverse) */
    uint32_t shift, least;
    uint64_t key; /* (distance + price, object) */
    int32_t count;
};

/* Is a person of a scaled auction to choose? */
static bool crowded(const struct auction *a, int32_t sample)
{
    return a->e->scaled &&
           a->left[sample] > pnet_pairs_points(&a->e->sets.x, sample) / PNET_EMD_PART;
}

static struct choice choice_of(
    const struct auction *a, int64_t person, int32_t sample, const struct view *v)
{
    struct choice c = {.inverse = 2 / eps_of(a, sample), .least = UINT32_MAX, .key = v->best};
    c.group = truncf(pnet_pair_number(v->best) * c.inverse);
    c.shift = pnet_emd_hash((uint32_t)(person - a->e->sets.x.splits[sample]), (uint32_t)a->round);
    return c;
}

static void choose(struct choice *c, uint64_t key)
{
    if (truncf(pnet_pair_number(key) * c->inverse) > c->group) return;
    uint32_t at = (uint32_t)pnet_pair_index(key) * PNET_EMD_STRIDE + c->shift;
    if (at <= c->least) {
        c->least = at;
        c->key = key;
    }
    c->count++;
}

static void offer_for(
    struct auction *a, int64_t person, int64_t place, const struct view *v, uint64_t chosen)
{
    int32_t sample = pnet_pairs_sample(&a->e->sets.x, person);
    float own = pnet_pair_number(chosen), price = a->price[place + pnet_pair_index(chosen)],
          other = chosen == v->best ? v->second : pnet_pair_number(v->best);
    if (other == INFINITY) other = own; /* the only object */
    float offer = (price + (other - own)) + eps_of(a, sample);
    a->wants[person] = pnet_pair_index(chosen);
    a->offer[person] = offer > price ? offer : nextafterf(price, INFINITY);
}

/* Bids by what the person remembers. Returns whether that is known to be what a look at all objects gives. */
static bool bid_remembered(struct auction *a, int64_t person, int32_t sample, int64_t place)
{
    const uint64_t *key = a->key + person * a->keep, none = UINT64_MAX;
    uint64_t cutoff = a->cutoff[person];
    struct view v = {none, INFINITY};
    int32_t keys = a->keys[person];
    /* a price is 0 or more: nothing behind a distance above `second` is better than it */
    for (int32_t k = 0; k < keys && pnet_pair_number(key[k]) <= v.second; k++) {
        int32_t j = pnet_pair_index(key[k]);
        see(&v, pnet_pair_key(pnet_pair_number(key[k]) + a->price[place + j], j));
    }
    if (v.best == none) return false;
    if (cutoff != none && (v.best > cutoff || v.second > pnet_pair_number(cutoff))) return false;
    uint64_t chosen = v.best;
    if (crowded(a, sample)) {
        struct choice c = choice_of(a, person, sample, &v);
        if (cutoff != none && truncf(pnet_pair_number(cutoff) * c.inverse) <= c.group) return false;
        for (int32_t k = 0; k < keys && truncf(pnet_pair_number(key[k]) * c.inverse) <= c.group;
             k++) {
            int32_t j = pnet_pair_index(key[k]);
            choose(&c, pnet_pair_key(pnet_pair_number(key[k]) + a->price[place + j], j));
        }
        chosen = c.key;
    }
    offer_for(a, person, place, &v, chosen);
    return true;
}

/* Bids by looks at all objects, and remembers none: more may serve as well as the best one than a person remembers. */
static void bid_scanning(struct auction *a, int64_t person, int32_t sample, int64_t place)
{
    const float *x = a->e->sets.x.xyz + 3 * person;
    struct pnet_pair_points y = points_of(a, place);
    int32_t padded = (int32_t)pnet_pairs_padded(&a->e->sets.y, sample);
    struct view v = {UINT64_MAX, INFINITY};
    uint64_t key[CHUNK];
    for (int32_t first = 0; first < padded; first += CHUNK) {
        int32_t n = padded - first < CHUNK ? padded - first : CHUNK;
        int32_t found =
            a->isa->keys_of_sums(x, &y, first, n, v.second < FLT_MAX ? v.second : FLT_MAX, key);
        for (int32_t k = 0; k < found; k++) see(&v, key[k]);
    }
    struct choice c = choice_of(a, person, sample, &v);
    if (!crowded(a, sample) || truncf(v.second * c.inverse) > c.group) {
        offer_for(a, person, place, &v, v.best);
        return;
    }
    float limit = (c.group + 1) / c.inverse * (1 + 0x1p-20f); /* not below those of the class */
    for (int32_t first = 0; first < padded; first += CHUNK) {
        int32_t n = padded - first < CHUNK ? padded - first : CHUNK;
        int32_t found =
            a->isa->keys_of_sums(x, &y, first, n, limit < FLT_MAX ? limit : FLT_MAX, key);
        for (int32_t k = 0; k < found; k++) choose(&c, key[k]);
    }
    if (c.count > a->keep / 2) a->scans[person] = SCANS;
    offer_for(a, person, place, &v, c.key);
}

/* Where prices change much, a look serves few bids, and its keys cost more than they save. Either way gives the same bid. */
static void bid(struct auction *a, int64_t person)
{
    const struct pnet_point_set *y = &a->e->sets.y;
    int32_t sample = pnet_pairs_sample(&a->e->sets.x, person);
    int64_t place = pnet_pairs_begin(y, sample);
    if (a->e->scaled && a->scans[person] > 0) {
        a->scans[person]--;
        bid_scanning(a, person, sample, place);
        return;
    }
    if (bid_remembered(a, person, sample, place)) {
        if (a->e->scaled) a->served[person]++;
        return;
    }
    if (a->e->scaled && a->served[person] < SERVED) {
        a->scans[person] = SCANS;
        a->served[person] = SERVED; /* the next bid but SCANS looks */
        bid_scanning(a, person, sample, place);
        return;
    }
    look(a, person, place, (int32_t)pnet_pairs_padded(y, sample), false);
    if (a->e->scaled) a->served[person] = 0;
    if (!bid_remembered(a, person, sample, place)) bid_scanning(a, person, sample, place);
}

/* Gives each object to its largest bid. The persons who then have none are the list of the next round. */
static void sell(struct auction *a, int32_t *partner)
{
    const struct pnet_set_pair *p = &a->e->sets;
    int32_t left = 0;
    for (int32_t k = 0; k < a->count; k++) {
        int32_t i = a->list[k];
        int64_t at = pnet_pairs_begin(&p->y, pnet_pairs_sample(&p->x, i)) + a->wants[i];
        a->wants[i] = (int32_t)at;
        if (a->offer[i] > a->bid[at] || (a->offer[i] == a->bid[at] && i < a->bidder[at])) {
            a->bid[at] = a->offer[i];
            a->bidder[at] = i;
        }
    }
    for (int32_t k = 0; k < a->count; k++) {
        int32_t i = a->list[k], at = a->wants[i], loser = i;
        if (a->bidder[at] == i) {
            int32_t sample = pnet_pairs_sample(&p->x, i);
            loser = a->holder[at];
            if (loser >= 0)
                partner[loser] = -1;
            else
                a->left[sample]--;
            a->holder[at] = i;
            a->price[at] = a->bid[at];
            a->bid[at] = -1;
            partner[i] = (int32_t)(p->y.splits[sample] + at - pnet_pairs_begin(&p->y, sample));
        }
        if (loser >= 0) a->list[left++] = loser;
    }
    a->count = left;
}

/* Begins the next phase of samples where one is over. */
static void end_phases(struct auction *a, int32_t *partner)
{
    const struct pnet_point_set *y = &a->e->sets.y;
    for (int32_t s = 0; s < y->samples; s++) {
        int64_t place = pnet_pairs_begin(y, s), n = pnet_pairs_points(y, s);
        if (a->phases[s] == 0 || a->left[s] > n / PNET_EMD_PART) continue;
        for (int64_t at = place; at < place + n; at++) {
            if (a->holder[at] < 0) continue;
            partner[a->holder[at]] = -1;
            a->list[a->count++] = a->holder[at];
            a->holder[at] = -1;
        }
        a->left[s] = (int32_t)n;
        a->phases[s]--;
    }
}

/* Moves the objects of a sample that no person holds to its first places, in order. From here on a->bidder is the row of y of
   such an object, and a->price the distance at which it is held. */
static void gather_free(struct auction *a, int32_t sample)
{
    const struct pnet_point_set *y = &a->e->sets.y;
    int64_t place = pnet_pairs_begin(y, sample), n = pnet_pairs_points(y, sample);
    int32_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (a->holder[place + j] >= 0) continue;
        int64_t to = place + count++;
        for (int k = 0; k < 3; k++) a->at[k][to] = a->at[k][place + j];
        a->bidder[to] = (int32_t)(y->splits[sample] + j);
    }
    a->free[sample] = (count + PNET_PAIR_LANES - 1) / PNET_PAIR_LANES * PNET_PAIR_LANES;
    for (int32_t j = 0; j < a->free[sample]; j++) {
        a->price[place + j] = j < count ? INFINITY : -1; /* no distance is below -1 */
        a->holder[place + j] = -1;
    }
}

/* A person takes the nearest object whose holder is farther away; a holder who loses its object does the same. Returns the person
   whose list of remembered objects is exhausted; -1: none. */
static int64_t propose(struct auction *a, int64_t person)
{
    const struct pnet_set_pair *p = &a->e->sets;
    int64_t place = pnet_pairs_begin(&p->y, pnet_pairs_sample(&p->x, person));
    while (person >= 0) {
        if (a->wants[person] == a->keys[person]) return person;
        uint64_t key = a->key[person * a->keep + a->wants[person]++];
        int64_t at = place + pnet_pair_index(key), holder = a->holder[at];
        float distance = pnet_pair_number(key);
        if (distance > a->price[at] || (distance == a->price[at] && person > holder)) continue;
        a->price[at] = distance;
        a->holder[at] = (int32_t)person;
        person = holder;
    }
    return -1;
}

/* Assigns the persons who are left, the pair of least (distance, person, object) first. That is the stable matching of persons
   and objects who each prefer the nearer: there is only one, so it can be found by proposals, in any order (Gale, Shapley:
   College admissions and the stability of marriage, 1962). */
static void complete(struct auction *a, int32_t *partner)
{
    const struct pnet_set_pair *p = &a->e->sets;
    int32_t last = -1;
    for (int32_t s = 0; s < p->x.samples; s++) a->free[s] = 0;
    for (int32_t k = 0; k < a->count; k++) { /* persons of a sample need not lie together */
        int32_t s = pnet_pairs_sample(&p->x, a->list[k]);
        if (s != last && !a->free[s]) gather_free(a, s);
        last = s;
    }
    while (a->count > 0) {
        int32_t left = 0;
#pragma omp parallel for schedule(dynamic, 4) if (a->count > SERIAL)
        for (int32_t k = 0; k < a->count; k++) {
            int32_t i = a->list[k], s = pnet_pairs_sample(&p->x, i);
            look(a, i, pnet_pairs_begin(&p->y, s), a->free[s], true);
            a->wants[i] = 0;
        }
        for (int32_t k = 0; k < a->count; k++) {
            int64_t waiting = propose(a, a->list[k]);
            if (waiting >= 0) a->list[left++] = (int32_t)waiting;
        }
        a->count = left;
    }
    for (int32_t s = 0; s < p->x.samples; s++)
        for (int32_t j = 0; j < a->free[s]; j++) {
            int64_t at = pnet_pairs_begin(&p->y, s) + j;
            if (a->holder[at] < 0) continue;
            partner[a->holder[at]] = a->e->tell ? PNET_EMD_LEFT - a->bidder[at] : a->bidder[at];
        }
}

void pnet_cpu_emd_assign(const struct pnet_emd *e, int32_t *partner, void *work)
{
    struct auction a = lay_out(e, work);
    a.isa = pnet_pairs_isa();
    for (int32_t s = 0; s < e->sets.x.samples; s++) begin_sample(&a, s, partner);
    for (; a.round < e->rounds && a.count > 0; a.round++) {
#pragma omp parallel for schedule(dynamic, 4) if (a.count > SERIAL)
        for (int32_t k = 0; k < a.count; k++) bid(&a, a.list[k]);
        sell(&a, partner);
        end_phases(&a, partner);
    }
    if (e->complete) complete(&a, partner);
}

static double distance_of(const float *x, const float *y)
{
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
    return sqrt(sum);
}

void pnet_cpu_emd(
    const struct pnet_set_pair *sets, const int32_t *partner, double *mean, float *loss)
{
    const struct pnet_point_set *x = &sets->x, *y = &sets->y;
#pragma omp parallel for schedule(dynamic) if (x->rows.most > 8192)
    for (int32_t s = 0; s < x->samples; s++) {
        int64_t n = pnet_pairs_points(x, s);
        double sum = 0;
        for (int64_t i = x->splits[s]; i < x->splits[s + 1]; i++)
            sum += partner[i] >= 0 ? distance_of(x->xyz + 3 * i, y->xyz + 3 * (int64_t)partner[i])
                                   : (double)NAN;
        mean[s] = n > 0 && pnet_pairs_points(y, s) > 0 ? sum / (double)n : 0;
    }
    if (!loss) return;
    double total = 0;
    for (int32_t s = 0; s < x->samples; s++) total += mean[s];
    *loss = x->samples > 0 ? (float)(total / x->samples) : 0;
}

static void put(float *to, bool add, float v)
{
    *to = add ? *to + v : v;
}

/* The gradients of a sample: NaN where there is no assignment, 0 where a set is empty. */
static void backward_sample(const struct pnet_set_pair *p, int32_t s, const int32_t *partner,
    double factor, const struct pnet_set_gradients *g)
{
    const struct pnet_point_set *x = &p->x, *y = &p->y;
    bool empty = pnet_pairs_points(x, s) == 0 || pnet_pairs_points(y, s) == 0;
    bool alone = !empty && partner[x->splits[s]] < 0;
    float nothing = alone ? NAN : 0;
    for (int64_t k = 3 * x->splits[s]; k < 3 * x->splits[s + 1] && g->x && (empty || alone); k++)
        put(g->x + k, g->add_x, nothing);
    for (int64_t k = 3 * y->splits[s]; k < 3 * y->splits[s + 1] && g->y && (empty || alone); k++)
        put(g->y + k, g->add_y, nothing);
    for (int64_t i = x->splits[s]; i < x->splits[s + 1] && !empty && !alone; i++) {
        int64_t j = partner[i];
        double d = fmax(distance_of(x->xyz + 3 * i, y->xyz + 3 * j), 1e-6);
        for (int k = 0; k < 3; k++) {
            double difference = (double)x->xyz[3 * i + k] - (double)y->xyz[3 * j + k];
            float v = (float)(factor * difference / d);
            if (g->x) put(g->x + 3 * i + k, g->add_x, v);
            if (g->y) put(g->y + 3 * j + k, g->add_y, -v);
        }
    }
}

void pnet_cpu_emd_backward(const struct pnet_set_pair *sets, const int32_t *partner,
    const float *gloss, const struct pnet_set_gradients *g)
{
    const struct pnet_point_set *x = &sets->x;
#pragma omp parallel for schedule(dynamic) if (x->rows.most > 8192)
    for (int32_t s = 0; s < x->samples; s++) {
        double n = (double)pnet_pairs_points(x, s);
        backward_sample(sets, s, partner, n > 0 ? (double)*gloss / n / x->samples : 0, g);
    }
}
