/* A library to preload (LD_PRELOAD): it counts what a program allocates, and lets an allocation fail.

     PNET_FAIL_AT=N       the N-th allocation fails, from 1; 0 or nothing: none
     PNET_FAIL_ALL=1      and all behind it
     PNET_FAIL_COUNT=FILE at its end the program writes there how many there were
     PNET_FAIL_TRACE=1    where the first one fails, the calls that led there go to standard error

   Counted is what happens between main() and exit(), on all threads: what libraries allocate before, such as the CUDA runtime
   that is linked in, is not the program's. Not counted, for no program can survive them: allocations of OpenMP's runtime,
   which ends the process where one fails, and those of the threads that it starts. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

typedef int main_function(int argc, char **argv, char **environment);

static struct {
    main_function *main;
    int (*start_main)(main_function *own, int argc, char **argv, void (*init)(void),
        void (*fini)(void), void (*loader_end)(void), void *stack_end); /* the C library's */
    bool counting, all_behind, trace;
    long fail_at;
    atomic_long calls;
    const char *count_to;
    uintptr_t omp_begin, omp_end; /* where the runtime of OpenMP lies */
    int (*pthread_create)(
        pthread_t *, const pthread_attr_t *, void *(*)(void *), void *); /* the C library's */
} heap;
/* OpenMP starts a thread. What is reached without a call to the loader allocates nothing. */
static _Thread_local bool exempt __attribute__((tls_model("initial-exec")));

static bool in_openmp(const void *caller)
{
    return (uintptr_t)caller >= heap.omp_begin && (uintptr_t)caller < heap.omp_end;
}

static void print_calls(void)
{
    void *frames[32];
    exempt = true;
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    exempt = false;
}

static bool refuses(const void *caller)
{
    if (!heap.counting || exempt || in_openmp(caller)) return false;
    long call = atomic_fetch_add(&heap.calls, 1) + 1;
    if (!heap.fail_at || call < heap.fail_at) return false;
    if (call > heap.fail_at && !heap.all_behind) return false;
    if (call == heap.fail_at && heap.trace) print_calls();
    errno = ENOMEM;
    return true;
}
#define REFUSED refuses(__builtin_return_address(0))

void *malloc(size_t size)
{
    return REFUSED ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return REFUSED ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return REFUSED ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return REFUSED ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return REFUSED ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return REFUSED ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *got = REFUSED ? NULL : __libc_memalign(alignment, size);
    if (!got) return ENOMEM;
    *block = got;
    return 0;
}

int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    bool before = exempt;
    exempt = before || in_openmp(__builtin_return_address(0));
    int code = heap.pthread_create(thread, attributes, run, context);
    exempt = before;
    return code;
}

static int find_openmp(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!strstr(info->dlpi_name, "/libgomp.so") && !strstr(info->dlpi_name, "/libomp.so")) return 0;
    heap.omp_begin = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD) continue;
        if (begin < heap.omp_begin) heap.omp_begin = begin;
        if (begin + part->p_memsz > heap.omp_end) heap.omp_end = begin + part->p_memsz;
    }
    return 1;
}

static void write_count(void)
{
    char text[32];
    heap.counting = false;
    int fd = open(heap.count_to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&heap.calls));
    if (fd < 0 || write(fd, text, (size_t)size) != size) abort();
    close(fd);
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("PNET_FAIL_AT");
    void *ignored[1];
    heap.count_to = getenv("PNET_FAIL_COUNT");
    heap.all_behind = getenv("PNET_FAIL_ALL") != NULL;
    heap.trace = getenv("PNET_FAIL_TRACE") != NULL;
    heap.fail_at = at ? strtol(at, NULL, 10) : 0;
    *(void **)&heap.start_main = dlsym(RTLD_NEXT, "__libc_start_main");
    *(void **)&heap.pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    if (!heap.pthread_create || !heap.start_main) abort();
    dl_iterate_phdr(find_openmp, NULL);
    if (heap.trace) backtrace(ignored, 1); /* loads what it needs */
}

static int counted_main(int argc, char **argv, char **environment)
{
    if (heap.count_to && atexit(write_count)) abort();
    heap.counting = true;
    return heap.main(argc, argv, environment);
}

/* What the program's first instruction calls. */
int __libc_start_main(main_function *own, int argc, char **argv, void (*init)(void),
    void (*fini)(void), void (*loader_end)(void), void *stack_end);
int __libc_start_main(main_function *own, int argc, char **argv, void (*init)(void),
    void (*fini)(void), void (*loader_end)(void), void *stack_end)
{
    heap.main = own;
    if (!heap.start_main) begin(); /* the loader has run constructors; another order is possible */
    return heap.start_main(counted_main, argc, argv, init, fini, loader_end, stack_end);
}
