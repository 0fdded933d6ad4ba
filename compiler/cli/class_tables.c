#include "compiler/cli/class_tables.h"

#include <ctype.h>
#include <string.h>

/* LAS 1.4 - R15, table 17: classes of points. */
static const struct class_row asprs[] = {{"never_classified", 0}, {"unclassified", 1},
    {"ground", 2}, {"low_vegetation", 3}, {"medium_vegetation", 4}, {"high_vegetation", 5},
    {"building", 6}, {"low_point", 7}, {"low_noise", 7}, {"noise", 7}, {"water", 9}, {"rail", 10},
    {"road_surface", 11}, {"wire_guard", 13}, {"wire_conductor", 14}, {"transmission_tower", 15},
    {"wire_connector", 16}, {"bridge_deck", 17}, {"high_noise", 18}, {"overhead_structure", 19},
    {"ignored_ground", 20}, {"snow", 21}, {"temporal_exclusion", 22}, {NULL, 0}};

/* learning_map_inv of semantic-kitti.yaml: labels of its files. */
static const struct class_row semantickitti[] = {{"unlabeled", 0}, {"car", 10}, {"bicycle", 11},
    {"motorcycle", 15}, {"truck", 18}, {"other_vehicle", 20}, {"person", 30}, {"bicyclist", 31},
    {"motorcyclist", 32}, {"road", 40}, {"parking", 44}, {"sidewalk", 48}, {"other_ground", 49},
    {"building", 50}, {"fence", 51}, {"vegetation", 70}, {"trunk", 71}, {"terrain", 72},
    {"pole", 80}, {"traffic_sign", 81}, {"unlabelled", 0}, {NULL, 0}};

/* The 16 classes of the lidar segmentation challenge, in which its results are given; 0 is what it ignores. */
static const struct class_row nuscenes[] = {{"noise", 0}, {"barrier", 1}, {"bicycle", 2},
    {"bus", 3}, {"car", 4}, {"construction_vehicle", 5}, {"motorcycle", 6}, {"pedestrian", 7},
    {"traffic_cone", 8}, {"trailer", 9}, {"truck", 10}, {"driveable_surface", 11},
    {"other_flat", 12}, {"sidewalk", 13}, {"terrain", 14}, {"manmade", 15}, {"vegetation", 16},
    {"ignore", 0}, {"void_ignore", 0}, {NULL, 0}};

/* The 20 classes of the benchmark by their ids of NYU40, in which its results are given. */
static const struct class_row scannet20[] = {{"unannotated", 0}, {"wall", 1}, {"floor", 2},
    {"cabinet", 3}, {"bed", 4}, {"chair", 5}, {"sofa", 6}, {"table", 7}, {"door", 8}, {"window", 9},
    {"bookshelf", 10}, {"picture", 11}, {"counter", 12}, {"desk", 14}, {"curtain", 16},
    {"refrigerator", 24}, {"shower_curtain", 28}, {"toilet", 33}, {"sink", 34}, {"bathtub", 36},
    {"otherfurniture", 39}, {"other_furniture", 39}, {"refridgerator", 24}, {"showercurtain", 28},
    {NULL, 0}};

static const struct class_table tables[] = {
    {"asprs", "ASPRS", asprs, 0},
    {"semantickitti", "SemanticKITTI", semantickitti, 20},
    {"nuscenes", "nuScenes", nuscenes, 17},
    {"scannet20", "ScanNet", scannet20, 21},
};

const char *const pnet_cli_class_table_names[] = {
    "asprs", "semantickitti", "nuscenes", "scannet20", NULL};

const struct class_table *pnet_cli_class_table(const char *option)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(option, tables[i].option) == 0) return &tables[i];
    return NULL;
}

int pnet_cli_table_code(const struct class_table *t, const char *name, size_t length)
{
    for (const struct class_row *row = t->rows; row->name; row++) {
        size_t k = 0;
        for (; k < length && row->name[k]; k++) {
            int c = tolower((unsigned char)name[k]);
            if (row->name[k] != (c == ' ' || c == '-' ? '_' : c)) break;
        }
        if (k == length && !row->name[k]) return row->code;
    }
    return -1;
}
