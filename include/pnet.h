/* pnet: networks on point clouds. A .pnet text is compiled to a model; a session runs a model on one device.

   What holds for all functions
     Errors      Functions that can fail return enum pnet_status; PNET_OK is 0. `e` gets the status and a sentence, and may be
                 NULL; it is undefined after success. After a failure every handle can still be used, and freed.
     Quiet       Nothing prints, exits, reads the environment, or sets a locale or a signal. (The OpenMP runtime, which runs the
                 threads of the CPU, reads its own variables, such as OMP_NUM_THREADS, and ends the process where there is no
                 memory for its threads.)
     Threads     A session belongs to one thread at a time; different threads may use different sessions at the same time. All
                 other objects never change once they are made: any number of threads may use them at once.
     Ownership   The caller frees every object that a function gives, by the _free of its kind. Texts that functions return
                 belong to the model they came from and live as long as it does. Texts and arrays given to a function are read, or
                 filled, before it returns; nothing keeps a pointer to them.
     Structs     A struct that begins with `size` may grow in later versions. The caller sets `size` to its sizeof; all other
                 members may be zero, which chooses the default. A `size` below the sizeof of this version, or above 4096, is
                 PNET_USAGE. The other structs stay as they are.
     Pointers    are not NULL unless that is said. NULL where an object, a text, a struct or numbers must be, an object of another
                 class, and mostly one that was freed, are PNET_USAGE, and the message names the function and the argument;
                 functions without a status count 0 and free nothing.
     Numbers     Indices count from 0, and one too large is PNET_USAGE. Yes is 1, no 0.
     Arrays      are in host memory, but for those of calls on a set that lies on a GPU (struct pnet_voxel_options), and of
                 sessions with arrays on a GPU (struct pnet_session_options). */
#ifndef PNET_H
#define PNET_H

#include "pnet/base.h"
#include "pnet/model.h"
#include "pnet/session.h"
#include "pnet/sets.h"
#include "pnet/points.h"
#include "pnet/maps.h"
#include "pnet/attend.h"
#include "pnet/losses.h"

#endif
