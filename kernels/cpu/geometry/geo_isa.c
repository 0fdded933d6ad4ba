#include "kernels/cpu/geometry/geo_isa.h"

#include <math.h>
#include <string.h>
#include "kernels/conv.h"

#define ISA base
#define LANES 4
#include "kernels/cpu/geometry/geo_lanes.h"
#include "kernels/cpu/geometry/geo_search.h"
#undef ISA
#undef LANES

#if defined(__x86_64__)
#define ISA avx2
#define LANES 8
#include "kernels/cpu/geometry/geo_lanes.h"
#include "kernels/cpu/geometry/geo_search.h"
#undef ISA
#undef LANES

#define ISA avx512
#define LANES 16
#include "kernels/cpu/geometry/geo_lanes.h"
#include "kernels/cpu/geometry/geo_search.h"
#undef ISA
#undef LANES
#endif

const struct pnet_geo_isa *pnet_geo_isa(void)
{
#if defined(__x86_64__)
    const char *name = pnet_cpu_isa();
    if (strcmp(name, "avx512") == 0) return &isa_avx512;
    if (strcmp(name, "avx2") == 0) return &isa_avx2;
#endif
    return &isa_base;
}
