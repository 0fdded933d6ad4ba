/* For which GPUs a program has code. By the rules of the CUDA programming guide (binary and PTX compatibility): machine code
   runs on GPUs of the same major architecture and the same or a later minor one; PTX on all later GPUs; code with the
   instructions of one architecture (90a) on that one alone. Needs no GPU. */
#include "kernels/cuda/base/code.h"
#include "tests/check.h"

int main(void)
{
    enum { NONE = PNET_CUDA_CODE_NONE, PTX = PNET_CUDA_CODE_PTX, MACHINE = PNET_CUDA_CODE_MACHINE };
    static const struct {
        const char *list;
        int architecture, want;
    } cases[] = {
        {"", 80, NONE},
        {"90a-real", 90, MACHINE},
        {"90a-real", 80, NONE},
        {"90a-real", 100, NONE},
        {"90a", 90, MACHINE},
        {"90a", 100, NONE},
        {"90a-virtual", 90, PTX},
        {"90a-virtual", 103, NONE},
        {"80-real", 80, MACHINE},
        {"80-real", 86, MACHINE},
        {"80-real", 89, MACHINE},
        {"80-real", 90, NONE},
        {"80-real", 75, NONE},
        {"86-real", 80, NONE},
        {"86-real", 87, MACHINE},
        {"80-virtual", 80, PTX},
        {"80-virtual", 75, NONE},
        {"80-virtual", 120, PTX},
        {"80", 89, MACHINE},
        {"80", 90, PTX},
        {"75,86-real", 80, PTX}, /* of 75, compiled by the driver */
        {"80,86-real,89-real,90a-real,100-real,120-real", 75, NONE},
        {"80,86-real,89-real,90a-real,100-real,120-real", 80, MACHINE},
        {"80,86-real,89-real,90a-real,100-real,120-real", 90, MACHINE},
        {"80,86-real,89-real,90a-real,100-real,120-real", 103, MACHINE},
        {"80,86-real,89-real,90a-real,100-real,120-real", 110, PTX},
        {"80,86-real,89-real,90a-real,100-real,120-real", 121, MACHINE},
        {"80,86-real,89-real,90a-real,100-real,120-real", 130, PTX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = (int)pnet_cuda_code_of(cases[i].list, cases[i].architecture);
        CHECKF(got == cases[i].want, "'%s' for %d: %d, not %d", cases[i].list,
            cases[i].architecture, got, cases[i].want);
    }
#ifdef PNET_CUDA_BUILT
    CHECK(*pnet_cuda_code_list() != 0);
#else
    CHECK(*pnet_cuda_code_list() == 0);
#endif
    return check_end();
}
