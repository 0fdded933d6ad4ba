/* The commands of pnet-bench; each gets its own name as argv[0] and returns the exit code. */
#ifndef PNET_BENCH_COMMANDS_H
#define PNET_BENCH_COMMANDS_H

int pnet_bench_ablate(int argc, char **argv);
int pnet_bench_ablate_map(int argc, char **argv);
int pnet_bench_ablate_orders(int argc, char **argv);
int pnet_bench_chart(int argc, char **argv);
int pnet_bench_conv(int argc, char **argv);
int pnet_bench_cpu(int argc, char **argv);
int pnet_bench_geometry(int argc, char **argv);
int pnet_bench_layer(int argc, char **argv);
int pnet_bench_loss(int argc, char **argv);
int pnet_bench_net(int argc, char **argv);
int pnet_bench_sweep(int argc, char **argv);

#endif
