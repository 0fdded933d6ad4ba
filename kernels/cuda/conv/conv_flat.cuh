/* Rows of 16-bit numbers whose width is no multiple of 16 bytes. 64 rows of a dense matrix are: they are copied to shared
   memory as contiguous bytes, and moved from there to panels as the matrix unit reads them. */
#ifndef PNET_KERNELS_CUDA_CONV_FLAT_CUH
#define PNET_KERNELS_CUDA_CONV_FLAT_CUH

#include "kernels/cuda/base/hopper.cuh"

enum { FLAT_ROWS = 64 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ __forceinline__ uint32_t shared_load_short(uint32_t from)
{
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(from));
    return v;
}

/* Starts copies of `rows` rows of `width` numbers (aligned to 16 bytes) by `threads` threads. The first `left` rows
   exist; the others are filled with zeros. */
static __device__ __forceinline__ void flat_copy(
    uint32_t to, const void *from, int rows, int width, int64_t left, int thread, int threads)
{
    int bytes = rows * width * 2, there = left < rows ? (int)left * width * 2 : bytes;
    for (int i = thread * 16; i < bytes; i += threads * 16) {
        const char *p = (const char *)from + i;
        if (i + 16 <= there) {
            copy16(to + i, p);
        } else { /* what lies behind the last row is not touched */
            uint32_t word[4] = {};
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (i + 2 * k < there)
                    word[k / 2] |= (uint32_t)((const uint16_t *)p)[k] << k % 2 * 16;
            shared_store(to + i, uint4{word[0], word[1], word[2], word[3]});
        }
    }
}

/* Moves 64 rows to panels: 64 columns of 128 bytes a row, the panel of the next 64 columns `block` bytes further. Rows
   are padded with zeros to a multiple of 8 columns. */
static __device__ __forceinline__ void flat_lay(
    uint32_t from, uint32_t to, int width, int block, int thread, int threads)
{
    int units = (width + 7) / 8;
    for (int i = thread; i < FLAT_ROWS * units; i += threads) {
        int row = i % FLAT_ROWS, unit = i / FLAT_ROWS, left = width - unit * 8;
        uint32_t p = from + (uint32_t)(row * width + unit * 8) * 2, word[4];
        if (width % 2 == 0) {
#pragma unroll
            for (int k = 0; k < 4; k++) word[k] = 2 * k < left ? shared_load_word(p + k * 4) : 0;
        } else {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                word[k] = 2 * k < left ? shared_load_short(p + k * 4) : 0;
                if (2 * k + 1 < left) word[k] |= shared_load_short(p + k * 4 + 2) << 16;
            }
        }
        shared_store(to + (uint32_t)(unit / 8 * block + row * 128 + (unit % 8 ^ row % 8) * 16),
            uint4{word[0], word[1], word[2], word[3]});
    }
}
#endif
#endif
