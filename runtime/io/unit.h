/* Units of coordinates: what a file states about them, and what a user says. */
#ifndef PNET_RUNTIME_IO_UNIT_H
#define PNET_RUNTIME_IO_UNIT_H

#include <stdbool.h>
#include <stddef.h>

enum pnet_axis_unit_kind {
    PNET_AXIS_NONE,     /* the format has no place for a unit */
    PNET_AXIS_UNSTATED, /* the format has one, but the file does not state its unit */
    PNET_AXIS_LENGTH,   /* `size` metres */
    PNET_AXIS_ANGLE,    /* `size` radians */
    PNET_AXIS_UNCLEAR,  /* what the file states has no clear meaning */
};

/* The unit of an axis, as a file states it. */
struct pnet_axis_unit {
    enum pnet_axis_unit_kind kind;
    double size;
    char name[48]; /* in the plural: "US survey feet"; PNET_AXIS_UNCLEAR: the statement */
};

/* A unit of length that has a name here. */
struct pnet_length {
    const char *symbol, *name; /* "us-ft", "US survey feet" */
    double metres;
    int epsg; /* its code in the EPSG data set */
};

/* What a user says about the unit of clouds. Zeroed: nothing, so the numbers are taken as metres. */
struct pnet_unit_choice {
    bool of_file;                      /* the unit that each file states */
    const struct pnet_length *axes[2]; /* else that of x and y, and of z; NULL: nothing is said */
};

/* Parses `file`, a symbol (m, km, cm, mm, in, ft, us-ft, yd), or two with a comma between: that of x and y, then that of z.
   Returns false if it is none of these. */
bool pnet_unit_parse(const char *text, struct pnet_unit_choice *c);
/* Writes a choice as pnet_unit_parse reads it; "" where nothing is said. */
void pnet_unit_print(const struct pnet_unit_choice *c, char text[32]);

/* Makes a unit of a factor to metres or radians; `name` is that of a file, which need not end in a zero. A factor that
   contradicts the name makes it unclear. */
struct pnet_axis_unit pnet_unit_length(double metres, const char *name, size_t name_size);
struct pnet_axis_unit pnet_unit_angle(double radians, const char *name, size_t name_size);
/* Makes a unit of length, or of angles, of its code in the EPSG data set; unclear if the code is not known here. */
struct pnet_axis_unit pnet_unit_length_code(unsigned code);
struct pnet_axis_unit pnet_unit_angle_code(unsigned code);

/* Tells whether two units have the same kind and, up to rounding, the same size. */
bool pnet_unit_same(const struct pnet_axis_unit *a, const struct pnet_axis_unit *b);
/* Returns a short name: the symbol of a known length, "degrees", the name of others; "m" where nothing is stated, because
   the numbers are taken as metres. */
const char *pnet_unit_symbol(const struct pnet_axis_unit *u);

/* Writes what a reader of the file must know about the units, or "". units[2]: of x and y, and of z; metres[2]: the factors
   that the coordinates were multiplied with (0: they were not). */
void pnet_unit_doubt(const struct pnet_axis_unit units[2], const struct pnet_unit_choice *c,
    const double metres[2], char text[256]);

#endif
