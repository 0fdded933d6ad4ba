/* pnetc: one command a file. */
#include "compiler/cli/cli.h"
#include "runtime/base/guard.h"
#include "runtime/base/printable.h"
#include "runtime/base/thread.h"
#include "runtime/device/device.h"
#include "runtime/io/hdf5_library.h"
#include "runtime/io/laszip_library.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct command commands[] = {
    {"check", "report the errors and warnings of a model", pnet_command_check},
    {"fmt", "write a model in its canonical form", pnet_command_fmt},
    {"plan", "print levels, triplet sets, buffers and the memory peak", pnet_command_plan},
    {"graph", "draw the network", pnet_command_graph},
    {"train", "train a model on a data set", pnet_command_train},
    {"infer", "run a net on clouds", pnet_command_infer},
    {"eval", "losses and metrics of a trained model", pnet_command_eval},
    {"compare", "train or evaluate native and voxel mode side by side", pnet_command_compare},
    {"register", "find the pose that brings one cloud to another", pnet_command_register},
    {"data", "make data sets, print what they hold", pnet_command_data},
    {"ops", "the layers, losses and metrics of the language", pnet_command_ops},
    {"import", "make weights of a model from those of another library", pnet_command_import},
    {"export", "write weights as another library has them", pnet_command_export},
    {"info", "what a cloud, checkpoint or weights file holds", pnet_command_info},
    {"lsp", "serve an editor: the language server", pnet_command_lsp},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const char *const exit_codes[][2] = {
    {"0", "done"},
    {"1", "failed"},
    {"2", "the command line is wrong"},
    {"3", "the model has errors"},
    {"4", "data that cannot be read, or do not fit the model"},
    {"5", "over the memory budget, or out of memory"},
    {"6", "the device is not there, or failed"},
    {"128+N", "ended by signal N: 130 for Ctrl-C, 129 for a closed terminal, 143 for kill"},
};
enum { EXIT_CODES = sizeof exit_codes / sizeof exit_codes[0] };

static void print_help(FILE *f)
{
    fputs("pnetc compiles and runs networks for point clouds.\n\nusage: pnetc COMMAND "
          "[ARGUMENTS]\n\n",
        f);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    fputs("\npnetc COMMAND --help describes a command.\n\nexit codes:\n", f);
    for (int i = 0; i < EXIT_CODES; i++)
        fprintf(f, "  %-8s  %s\n", exit_codes[i][0], exit_codes[i][1]);
}

/* The lines of listing.c, and what belongs to all commands. */
static int print_table(void)
{
    puts("version\t" PNET_VERSION);
    for (int i = 0; i < EXIT_CODES; i++)
        printf("exit\t%s\t%s\n", exit_codes[i][0], exit_codes[i][1]);
    return pnet_cli_print_commands("", commands, COMMANDS);
}

/* Flushes standard output, because only then all write errors are known. */
static int finish(int code)
{
    struct pnet_error e;
    errno = 0;
    bool failed = fflush(stdout) != 0;
    int why = errno;
    if (!failed && !ferror(stdout)) return code;
    /* An earlier write failed and its errno is lost; writing one byte more, to an incomplete output, finds the reason. */
    if (!failed && write(STDOUT_FILENO, "\n", 1) < 0) why = errno;
    if (why)
        pnet_error_errno(&e, PNET_FAILED, why, "standard output: cannot write");
    else
        pnet_error_set(&e, PNET_FAILED, "standard output: cannot write");
    pnet_cli_complain(&e);
    return code ? code : PNET_FAILED;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return PNET_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return PNET_OK;
    }
    if (strcmp(argv[1], "--help=table") == 0) return print_table();
    if (strcmp(argv[1], "--version") == 0) {
        puts("pnetc " PNET_VERSION);
        if (*pnet_device_code_list()) printf("code for GPUs: %s\n", pnet_device_code_list());
        return PNET_OK;
    }
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], names[i]) != 0) continue;
        int code = commands[i].run(argc - 2, argv + 2);
        if (code && pnet_guard_has_refused()) return PNET_USAGE;
        return code == PNET_INTERRUPTED ? pnet_cli_interrupt_code() : code;
    }
    const char *near = pnet_nearest(argv[1], names, COMMANDS);
    if (near) return pnet_cli_usage_error("no command '%s': did you mean %s?", argv[1], near);
    return pnet_cli_usage_error("no command '%s': see pnetc --help", argv[1]);
}

/* Occupies the numbers of standard streams that the caller closed, or else a file of data would get one, and with it what is
   printed. What is open there is for the other direction, so that reads and writes fail as on a closed one. */
static bool keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        /* the lowest free number is this one */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

/* Reads a size of a stack as OpenMP does: 512, in KiB, or 512k, 2M. Returns false if it is none: then OpenMP ignores it. */
static bool read_stack_size(const char *text, unsigned long long *bytes)
{
    static const char units[] = "bkmg";
    char *end;
    errno = 0;
    *bytes = strtoull(text, &end, 10);
    if (errno || end == text || strchr(text, '-')) return false;
    end += strspn(end, " \t");
    const char *unit = *end ? strchr(units, *end | 0x20) : &units[1];
    if (!unit || (*end && end[1 + strspn(end + 1, " \t")])) return false;
    for (const char *u = units; u < unit; u++) *bytes = *bytes < 1ULL << 50 ? *bytes << 10 : *bytes;
    return true;
}

/* Refuses stacks that a computation would overflow. */
static enum pnet_status check_stacks(struct pnet_error *e)
{
    static const char *const names[] = {
        "OMP_STACKSIZE", "GOMP_STACKSIZE"}; /* the first one counts */
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < PNET_STACK_BYTES)
        return pnet_error_set(e, PNET_FAILED,
            "the stack is limited to %llu KiB, but 1024 are needed: ulimit -s 8192",
            (unsigned long long)limit.rlim_cur >> 10);
    const char *text = NULL;
    unsigned long long bytes;
    for (int i = 0; i < 2 && !text; i++) {
        text = getenv(names[i]);
        if (text && read_stack_size(text, &bytes) && bytes < PNET_STACK_BYTES) {
            char shown[40];
            return pnet_error_set(e, PNET_FAILED,
                "%s=%s: stacks of threads need 1M at least: leave it out, or give more", names[i],
                pnet_printable(text, shown, sizeof shown));
        }
    }
    return PNET_OK;
}

/* Limits what the environment asks of OpenMP. */
static void limit_threads(void)
{
    int asked = pnet_threads_limit();
    if (asked)
        pnet_cli_notice("the environment asks for %d threads, at most %d are possible: %d are used",
            asked, (int)PNET_THREADS_MOST, omp_get_max_threads());
    omp_set_max_active_levels(1); /* a list of numbers asks for regions inside of regions */
}

int main(int argc, char **argv)
{
    struct pnet_error e;
    if (!keep_standard_streams()) return PNET_FAILED;
    if (check_stacks(&e)) return pnet_cli_complain(&e);
    limit_threads();
    pnet_device_limit_isa(getenv("PNET_ISA"));
    pnet_device_limit_kernels(getenv("PNET_CUDA_KERNELS"));
    pnet_hdf5_choose(getenv("PNET_HDF5_LIBRARY"));
    pnet_laszip_choose(getenv("PNET_LASZIP_LIBRARY"));
    pnet_guard_begin();
    signal(SIGXFSZ,
        SIG_IGN); /* a limit on file sizes is an error of the write, not the end of the process */
    return finish(run(argc, argv));
}
