/* Numbers as text, the same whatever locale the program around this library has set. The locale is set
   for the calling thread alone. */
#ifndef PNET_LANG_NUMBER_H
#define PNET_LANG_NUMBER_H

#include <locale.h>
#include <stdlib.h>

/* The C locale is a constant of the C library: nothing is allocated, and it needs no freeing. */
static inline locale_t pnet_plain_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* strtod of all of `text`. */
static inline double pnet_plain_number(const char *text)
{
    return strtod_l(text, NULL, pnet_plain_locale());
}

#endif
