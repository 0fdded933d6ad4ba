/* Rows to another order and back, and numbers in 16 bits: every number that there is, and rounding against the two neighbours. */
#include "kernels/halves.h"
#include "kernels/rows.h"
#include "tests/check.h"

/* The next number in 16 bits away from zero. */
static float next(uint16_t bits, bool bf16)
{
    return bf16 ? pnet_from_bf16((uint16_t)(bits + 1)) : pnet_from_fp16((uint16_t)(bits + 1));
}

static uint16_t to(float x, bool bf16)
{
    return bf16 ? pnet_to_bf16(x) : pnet_to_fp16(x);
}

/* Each number is itself; between two neighbours the nearer one is taken, in the middle the even one. */
static void test_halves(bool bf16)
{
    const uint16_t infinity = bf16 ? 0x7f80 : 0x7c00;
    int wrong = 0;
    for (uint32_t i = 0; i < infinity; i++) {
        uint16_t bits = (uint16_t)i, after = (uint16_t)(i + 1), even = i & 1 ? after : bits;
        float x = bf16 ? pnet_from_bf16(bits) : pnet_from_fp16(bits);
        /* behind the largest number stands what would be the next power of two */
        double y = after == infinity ? ldexp(1, bf16 ? 128 : 16) : (double)next(bits, bf16);
        float middle = (float)(((double)x + y) / 2);
        wrong += to(x, bf16) != bits || to(-x, bf16) != (bits | 0x8000);
        wrong += to(middle, bf16) != even || to(-middle, bf16) != (even | 0x8000);
        wrong += to(nextafterf(middle, 0), bf16) != bits;
        wrong += to(nextafterf(middle, INFINITY), bf16) != after;
    }
    CHECKF(wrong == 0, "%d of %d numbers", wrong, (int)infinity);
    CHECK(to(INFINITY, bf16) == infinity && to(-INFINITY, bf16) == (infinity | 0x8000));
    CHECK(to(1e38F, bf16) == (bf16 ? 0x7e96 : infinity) && to(0, bf16) == 0 &&
          to(-0.0F, bf16) == 0x8000);
    CHECK(isnan(bf16 ? pnet_from_bf16(to(NAN, true)) : pnet_from_fp16(to(NAN, false))));
    CHECK(isinf(bf16 ? pnet_from_bf16(infinity) : pnet_from_fp16(infinity)));
}

enum { ROWS = 12, WIDTH = 3, EACH = 2 };

/* Out and back in gives the tensor again, and each row lies where its index says. */
static void test_orders(enum pnet_storage storage)
{
    static const int32_t order[ROWS / EACH] = {4, 0, 5, 2, 1, 3};
    float x[ROWS][WIDTH], there[ROWS][WIDTH];
    uint16_t half[ROWS][WIDTH];
    void *tensor = storage == PNET_STORE_F32 ? (void *)x : (void *)half;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < WIDTH; k++) {
            x[i][k] = (float)(10 * i + k);
            half[i][k] = storage == PNET_STORE_BF16 ? pnet_to_bf16(x[i][k]) : pnet_to_fp16(x[i][k]);
        }
    struct pnet_placing p = {ROWS, WIDTH, order, EACH};
    pnet_cpu_rows_out(p, tensor, storage, NULL, there[0]);
    for (int i = 0; i < ROWS; i++)
        CHECK(memcmp(there[order[i / EACH] * EACH + i % EACH], x[i], sizeof x[i]) == 0);
    char again[sizeof x];
    size_t bytes = storage == PNET_STORE_F32 ? sizeof x : sizeof half;
    pnet_cpu_rows_in(p, there[0], storage, again);
    CHECK(memcmp(again, tensor, bytes) == 0);
    /* rows that are read through another index, in their own order */
    static const int32_t from[ROWS] = {11, 0, 0, 3, 3, 3, 7, 1, 2, 9, 9, 10};
    pnet_cpu_rows_out((struct pnet_placing){ROWS, WIDTH, NULL, 1}, tensor, storage, from, there[0]);
    for (int i = 0; i < ROWS; i++) CHECK(memcmp(there[i], x[from[i]], sizeof x[i]) == 0);
}

int main(void)
{
    test_halves(true);
    test_halves(false);
    for (int s = PNET_STORE_F32; s <= PNET_STORE_FP16; s++) test_orders((enum pnet_storage)s);
    return check_end();
}
