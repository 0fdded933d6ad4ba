/* Orders of the rows of a level, along which attention takes buckets of equal size (kernels/attend.h). Flash3D hashes points to
   buckets (Chen et al., Flash3D, 2024); here rows are sorted by the hash and cut into buckets of equal size: none overflows, and
   the result does not depend on the arrival of threads.

   Of a row, u is its voxel less the least voxel of its sample on each axis; b is the number of bits of the largest u of the
   sample, n its rows, nb = max(1, ceil(n / bucket)). X = ux ^ uy ^ uz; Z = the Morton code of u (x highest), shifted right to
   its top 16 bits where 3 b > 16. Rows are sorted by (sample, key), stable:

     z             as they are, which is by the Morton code
     z_trans       Morton code of (uy, ux, uz)
     hilbert       Hilbert code of u with b bits an axis (Skilling, Programming the Hilbert curve, 2004)
     hilbert_trans Hilbert code of (uy, ux, uz)
     xor_div       (X nb) >> b
     xor_mod       X mod nb
     z_mod         Z mod nb

   Integers alone, so either device has the same order. Points outside of the key range are clamped to it. */
#ifndef PNET_KERNELS_ORDER_H
#define PNET_KERNELS_ORDER_H

#include "kernels/both.h"
#include "kernels/geometry.h"
#include "kernels/morton.h"

/* In the order of the choices of the layer `attend`. */
enum pnet_order {
    PNET_ORDER_Z,
    PNET_ORDER_Z_TRANS,
    PNET_ORDER_HILBERT,
    PNET_ORDER_HILBERT_TRANS,
    PNET_ORDER_XOR_DIV,
    PNET_ORDER_XOR_MOD,
    PNET_ORDER_Z_MOD,
    PNET_ORDERS
};

/* Keys below the number of buckets of a sample. */
PNET_HD bool pnet_order_hashes(enum pnet_order order)
{
    return order >= PNET_ORDER_XOR_DIV;
}

PNET_HD int64_t pnet_bucket_count(int64_t rows, int32_t bucket)
{
    return rows > bucket ? (rows + bucket - 1) / bucket : 1;
}
/* Where bucket k of `buckets` begins among the rows of a sample; k = buckets: their end. Sizes differ by at most 1. */
PNET_HD int64_t pnet_bucket_begin(int64_t rows, int64_t buckets, int64_t k)
{
    return k * rows / buckets;
}

/* The place of u on the Hilbert curve through a cube of 2^bits voxels an axis, bits <= 21. */
PNET_HD uint64_t pnet_hilbert_key(uint32_t x, uint32_t y, uint32_t z, int bits)
{
    uint32_t at[3] = {x, y, z}, flips = 0;
    for (int b = bits - 1; b > 0; b--) {
        uint32_t below = (1u << b) - 1;
        for (int a = 0; a < 3; a++) {
            uint32_t set = 0u - (at[a] >> b & 1), swap = (at[0] ^ at[a]) & below & ~set;
            at[0] ^= (below & set) | swap;
            at[a] ^= swap;
        }
    }
    at[1] ^= at[0];
    at[2] ^= at[1];
    for (int b = bits - 1; b > 0; b--)
        if (at[2] >> b & 1) flips ^= (1u << b) - 1;
    return pnet_key_join(at[0] ^ flips, at[1] ^ flips, at[2] ^ flips);
}

/* The key of a row in a sample of `buckets` buckets, fewer than 2^31. */
PNET_HD uint64_t pnet_order_key(
    enum pnet_order order, const uint32_t u[3], int bits, int64_t buckets)
{
    uint64_t mixed = u[0] ^ u[1] ^ u[2], code;
    switch (order) {
    case PNET_ORDER_Z_TRANS: return pnet_key_join(u[1], u[0], u[2]);
    case PNET_ORDER_HILBERT: return pnet_hilbert_key(u[0], u[1], u[2], bits);
    case PNET_ORDER_HILBERT_TRANS: return pnet_hilbert_key(u[1], u[0], u[2], bits);
    case PNET_ORDER_XOR_DIV: return mixed * (uint64_t)buckets >> bits;
    case PNET_ORDER_XOR_MOD: return (uint32_t)mixed % (uint32_t)buckets;
    case PNET_ORDER_Z_MOD:
        code = pnet_key_join(u[0], u[1], u[2]);
        return (uint32_t)(3 * bits > 16 ? code >> (3 * bits - 16) : code) % (uint32_t)buckets;
    case PNET_ORDER_Z:
    case PNET_ORDERS: break;
    }
    return 0;
}

/* The number of bits of u. */
PNET_HD int pnet_order_bits(uint32_t u)
{
    int bits = 0;
    while (u >> bits) bits++;
    return bits;
}

/* row [rows]: the row at each place of the order, which is not PNET_ORDER_Z. `grid` makes voxels; `bucket` is read by orders
   that hash alone. */
PNET_BOTH(size_t, bucket_order_work, const struct pnet_level *level);
PNET_BOTH(void, bucket_order, const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work);

#endif
