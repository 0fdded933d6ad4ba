/* Numbers as text, the same in every locale that the program around this library may set: with a decimal comma numbers would be
   read wrong, and files would be written that other programs cannot read. All parsing and printing of numbers with a fraction
   uses these functions. They set the locale for the calling thread only. */
#ifndef PNET_RUNTIME_NUMBER_H
#define PNET_RUNTIME_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* strtod and strtof. */
double pnet_number_read(const char *text, char **end);
float pnet_number_read_single(const char *text, char **end);

/* snprintf, vsnprintf and fprintf. */
int pnet_number_format(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int pnet_number_vformat(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int pnet_number_write(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For many prints: the C locale is set from enter to leave; leave takes the result of enter. */
locale_t pnet_locale_enter(void);
void pnet_locale_leave(locale_t before);

/* "1.23 GiB"; returns `text`. */
const char *pnet_bytes_text(size_t bytes, char text[32]);

#endif
