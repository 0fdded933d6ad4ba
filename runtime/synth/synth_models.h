/* Things of the synthetic scenes. Each is added to the scene around the origin, standing on z = 0,
   with the brush's label and random proportions; the caller then places it. Private to
   runtime/synth/synth*.c. */
#ifndef PNET_RUNTIME_SYNTH_MODELS_H
#define PNET_RUNTIME_SYNTH_MODELS_H

#include "runtime/synth/synth_rand.h"
#include "runtime/synth/synth_scene.h"

/* Half extents in x and y, and the height, metres. */
struct pnet_size {
    float x, y, z;
};

/* Colour families, shared by classes that have the material in common. */
enum pnet_palette {
    PNET_PAINT, /* walls, ceilings, doors, boards: near white and pastel */
    PNET_WOOD,
    PNET_METAL,  /* greys to black */
    PNET_FABRIC, /* anything, muted */
    PNET_BRIGHT, /* anything, strong */
    PNET_SKY,    /* window panes */
};
void pnet_brush_colour(struct pnet_scene *s, struct pnet_draw *d, enum pnet_palette palette);

/* Furniture; the front is towards -y. */
struct pnet_size pnet_model_chair(struct pnet_scene *s, struct pnet_draw *d);
struct pnet_size pnet_model_table(struct pnet_scene *s, struct pnet_draw *d);
struct pnet_size pnet_model_sofa(struct pnet_scene *s, struct pnet_draw *d);
struct pnet_size pnet_model_shelf(struct pnet_scene *s, struct pnet_draw *d);
/* Stands on a pole; `scale` 1 for the floor, less for a table. */
struct pnet_size pnet_model_lamp(struct pnet_scene *s, struct pnet_draw *d, float scale);
/* Boxes, bins, plants, bags; `on_table`: books, screens, cups. */
struct pnet_size pnet_model_clutter(struct pnet_scene *s, struct pnet_draw *d, bool on_table);

/* Single objects of any size, for classification. */
enum { PNET_OBJECTS = 12 };
extern const char *const pnet_object_names[PNET_OBJECTS];
void pnet_model_object(struct pnet_scene *s, struct pnet_draw *d, int object);

/* Street furniture and traffic; x is ahead. `label` and `reflect` of the brush are set by these. */
enum pnet_street_class {
    PNET_ROAD,
    PNET_SIDEWALK,
    PNET_TERRAIN,
    PNET_BUILDING,
    PNET_FENCE,
    PNET_POLE,
    PNET_SIGN,
    PNET_TRUNK,
    PNET_VEGETATION,
    PNET_CAR,
    PNET_TRUCK,
    PNET_PERSON,
    PNET_CYCLIST,
    PNET_STREET_CLASSES,
};
extern const char *const pnet_street_names[PNET_STREET_CLASSES];
void pnet_brush_street(struct pnet_scene *s, enum pnet_street_class label, float reflect);
void pnet_model_car(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_truck(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_person(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_cyclist(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_tree(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_bush(struct pnet_scene *s, struct pnet_draw *d);
/* The arm of a street lamp reaches towards -y. */
void pnet_model_street_lamp(struct pnet_scene *s, struct pnet_draw *d);
void pnet_model_sign(struct pnet_scene *s, struct pnet_draw *d);
/* Fills [0, x] by [0, y]; the facade is y = 0. */
void pnet_model_building(struct pnet_scene *s, struct pnet_draw *d, float x, float y);
/* Along x from 0. */
void pnet_model_fence(struct pnet_scene *s, struct pnet_draw *d, float length);

/* Furnishes one room, its corner at the origin: all solids, and where a scanner can stand. */
enum pnet_room_class {
    PNET_CEILING,
    PNET_FLOOR,
    PNET_WALL,
    PNET_DOOR,
    PNET_WINDOW,
    PNET_BOARD,
    PNET_TABLE,
    PNET_CHAIR,
    PNET_SOFA,
    PNET_SHELF,
    PNET_LAMP,
    PNET_CLUTTER,
    PNET_ROOM_CLASSES,
};
extern const char *const pnet_room_names[PNET_ROOM_CLASSES];
enum { PNET_ROOM_SCANS = 3, PNET_ROOM_LIGHTS = 4 };
struct pnet_room {
    struct pnet_size size; /* whole edges here, not halves */
    struct pnet_vec scan[PNET_ROOM_SCANS];
    struct pnet_vec light[PNET_ROOM_LIGHTS];
    int lights;
};
void pnet_room_build(
    struct pnet_scene *s, struct pnet_draw *d, float edge_m, struct pnet_room *room);

/* Builds the street around a scanner `height_m` above the road at the origin, which drives along x.
 */
void pnet_street_build(struct pnet_scene *s, struct pnet_draw *d);

#endif
