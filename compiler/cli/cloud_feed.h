/* Which clouds feed which inputs of a model: --input CLOUD and --input NAME=CLOUD. */
#ifndef PNET_COMPILER_CLI_CLOUD_FEED_H
#define PNET_COMPILER_CLI_CLOUD_FEED_H

#include "compiler/cli/cli.h"
#include "runtime/base/glob.h"
#include "runtime/plan/input.h"

enum { CLOUD_FEED_MOST = 8 }; /* inputs that a net reads */

struct cloud_feed {
    int input
        [CLOUD_FEED_MOST]; /* of the model: those that the result reads, as they are declared */
    int count;
    struct pnet_paths clouds; /* count 1: each is run on by itself; else one for each input */
    bool many;                /* the results need a folder */
};

/* Finds the clouds of each input that the result reads. NAME= in front of a cloud says which input it feeds. One input:
   `options` are clouds, patterns and folders (pnet_cli_list_clouds), with or without its name. Several: one file for each,
   by name; one of them may go without. The caller frees f->clouds. PNET_USAGE: names are missing, twice or not the model's;
   errors of pnet_cli_list_clouds. */
enum pnet_status pnet_cli_feed_clouds(const struct text_list *options,
    const struct pnet_input *inputs, int input_count, struct cloud_feed *f, struct pnet_error *e);

#endif
