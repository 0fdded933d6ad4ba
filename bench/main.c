/* pnet-bench: one command a file. */
#include "bench/commands.h"
#include "runtime/base/error.h"
#include "runtime/base/guard.h"
#include "runtime/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"ablate", "algorithms and layers over a range of sizes, with a chart", pnet_bench_ablate},
    {"chart", "lines of numbers as a chart in SVG", pnet_bench_chart},
    {"conv", "one convolution layer and its gradients against the machine", pnet_bench_conv},
    {"cpu", "convolution against sgemm and neighbours against nanoflann, in one run",
        pnet_bench_cpu},
    {"geometry", "the stages from raw points to sorted triplets", pnet_bench_geometry},
    {"layer", "one expression, such as 'x -> linear(64)', layer by layer", pnet_bench_layer},
    {"loss", "a loss between two point sets, forward and backward", pnet_bench_loss},
    {"net", "a whole network: forward, backward, geometry, optimiser, memory, layers",
        pnet_bench_net},
    {"sweep", "one layer over widths, groups and sizes, held against its neighbours",
        pnet_bench_sweep},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

int main(int argc, char **argv)
{
    pnet_device_limit_isa(getenv("PNET_ISA"));
    pnet_device_limit_kernels(getenv("PNET_CUDA_KERNELS"));
    pnet_guard_begin();
    for (int i = 0; i < COMMANDS && argc > 1; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    bool help = argc > 1 && strcmp(argv[1], "--help") == 0;
    fputs("usage: pnet-bench COMMAND [OPTIONS]\n\n", help ? stdout : stderr);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(help ? stdout : stderr, "  %-10s %s\n", commands[i].name, commands[i].summary);
    return help ? PNET_OK : PNET_USAGE;
}
