/* The whole test framework: count what fails, say where, go on. */
#ifndef PNET_TESTS_CHECK_H
#define PNET_TESTS_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a sanitizer has taken malloc: it keeps freed blocks, so that memory grows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static int check_failed;
static int check_passed;

#define CHECK(cond)                                                                                \
    ((cond) ? (void)check_passed++                                                                 \
            : (void)(check_failed++,                                                               \
                  fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond)))

/* The same with a message that says what was there instead. */
#define CHECKF(cond, ...)                                                                          \
    do {                                                                                           \
        if (cond) {                                                                                \
            check_passed++;                                                                        \
        } else {                                                                                   \
            check_failed++;                                                                        \
            fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #cond);                     \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

#define CHECK_STR(got, want)                                                                       \
    CHECKF(strcmp((got), (want)) == 0, "got \"%s\", expected \"%s\"", (got), (want))

#ifdef PNET_CUDA_BUILT
void pnet_cuda_conv_limit(const char *kernels);
/* The kernels of other GPUs, as pnetc takes them (kernels/conv_plan.h). */
__attribute__((constructor)) static void check_limit_kernels(void)
{
    pnet_cuda_conv_limit(getenv("PNET_CUDA_KERNELS"));
}
#endif

/* Ends main(): a program that checked nothing has failed. */
static inline int check_end(void)
{
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed || !check_passed ? 1 : 0;
}

/* The folder with vectors/ and data/; exits 77 (skipped) where it is missing. */
static inline const char *check_data_dir(void)
{
    const char *dir = getenv("PNET_TEST_DATA");
    char path[4096];
    if (dir) {
        snprintf(path, sizeof path, "%s/vectors/README.md", dir);
        FILE *f = fopen(path, "r");
        if (f) {
            fclose(f);
            return dir;
        }
    }
    printf("skipped: PNET_TEST_DATA names no folder with vectors/ and data/\n");
    exit(77);
}

#endif
