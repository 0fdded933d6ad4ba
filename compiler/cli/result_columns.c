#include "compiler/cli/result_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pnet_cli_best(const float *scores, int width)
{
    int best = 0;
    for (int c = 1; c < width; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

int pnet_cli_probabilities(const float *scores, int width, double *p)
{
    int best = pnet_cli_best(scores, width);
    double sum = 0;
    for (int c = 0; c < width; c++) sum += p[c] = exp((double)scores[c] - (double)scores[best]);
    for (int c = 0; c < width; c++) p[c] /= sum;
    return best;
}

/* Chooses distinct colours: steps of the golden angle around the wheel, in three strengths. */
static void class_colour(int c, uint8_t rgb[3])
{
    double hue = fmod((double)c * 0.618033988749895, 1) * 6, value = c % 3 == 0   ? 0.95
                                                                     : c % 3 == 1 ? 0.75
                                                                                  : 0.55;
    for (int k = 0; k < 3; k++) {
        double x = fabs(fmod(hue + (k == 0 ? 3 : k == 1 ? 1 : 5), 6) - 3) - 1;
        x = x < 0 ? 0 : x > 1 ? 1 : x;
        rgb[k] = (uint8_t)(255 * value * (0.25 + 0.75 * x));
    }
}

/* Keeps a column of the input whose name a result takes, as input_NAME. */
static enum pnet_status keep_column(
    struct pnet_cloud *c, const char *name, struct kept_columns *kept, struct pnet_error *e)
{
    struct pnet_field *f = pnet_cloud_field(c, name);
    char as[64];
    if (!f) return PNET_OK;
    snprintf(as, sizeof as, "input_%s", name);
    for (int again = 2; pnet_cloud_field(c, as); again++)
        snprintf(as, sizeof as, "input_%s_%d", name, again);
    char *copy = strdup(as);
    if (!copy) return pnet_error_memory(e);
    free(f->name);
    f->name = copy;
    size_t used = strlen(kept->list);
    snprintf(kept->list + used, sizeof kept->list - used, "%s%s", kept->count ? ", " : "", name);
    kept->count++;
    return PNET_OK;
}

enum pnet_status pnet_cli_add_classes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct kept_columns *kept, struct pnet_error *e)
{
    if (keep_column(c, "class", kept, e) || keep_column(c, "score", kept, e)) return PNET_NO_MEMORY;
    struct pnet_field *f = pnet_cloud_add(c, "class", PNET_I32);
    int32_t *class_ = f ? f->data : NULL;
    f = pnet_cloud_add(c, "score", PNET_F32);
    float *score = f ? f->data : NULL;
    double *p = calloc((size_t)width, sizeof *p);
    bool ok = class_ && score && p;
    for (int64_t i = 0; ok && i < c->rows; i++) {
        int64_t row = row_of ? row_of[i] : i;
        class_[i] = -1; /* the point was dropped on loading */
        score[i] = NAN;
        if (row < 0) continue;
        class_[i] = pnet_cli_probabilities(result + row * width, width, p);
        score[i] = (float)p[class_[i]];
    }
    free(p);
    return ok ? PNET_OK : pnet_error_memory(e);
}

enum pnet_status pnet_cli_colour_classes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct pnet_error *e)
{
    static const char *const channels[3] = {"red", "green", "blue"};
    uint8_t *rgb[3] = {NULL, NULL, NULL};
    double *p = calloc((size_t)width, sizeof *p);
    bool ok = p != NULL;
    for (int k = 0; k < 3 && ok; k++) {
        struct pnet_field *f = pnet_cloud_add(c, channels[k], PNET_U8);
        ok = f != NULL;
        rgb[k] = f ? f->data : NULL;
    }
    for (int64_t i = 0; ok && i < c->rows; i++) {
        int64_t row = row_of ? row_of[i] : i;
        uint8_t colours[3];
        if (row < 0) continue;
        class_colour(pnet_cli_probabilities(result + row * width, width, p), colours);
        for (int k = 0; k < 3; k++) rgb[k][i] = colours[k];
    }
    free(p);
    return ok ? PNET_OK : pnet_error_memory(e);
}

enum pnet_status pnet_cli_add_features(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct kept_columns *kept, struct pnet_error *e)
{
    for (int k = 0; k < width; k++) {
        char name[32];
        snprintf(name, sizeof name, "feature_%d", k);
        if (keep_column(c, name, kept, e)) return PNET_NO_MEMORY;
        struct pnet_field *f = pnet_cloud_add(c, name, PNET_F32);
        if (!f) return pnet_error_memory(e);
        for (int64_t i = 0; i < c->rows; i++) {
            int64_t row = row_of ? row_of[i] : i;
            ((float *)f->data)[i] = row < 0 ? NAN : result[row * width + k];
        }
    }
    return PNET_OK;
}
