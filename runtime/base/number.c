#include "runtime/base/number.h"

#include <stdlib.h>

/* The C locale is a constant of the library: nothing is allocated, and it needs no freeing. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double pnet_number_read(const char *text, char **end)
{
    return strtod_l(text, end, c_locale());
}

float pnet_number_read_single(const char *text, char **end)
{
    return strtof_l(text, end, c_locale());
}

locale_t pnet_locale_enter(void)
{
    return uselocale(c_locale());
}

void pnet_locale_leave(locale_t before)
{
    uselocale(before);
}

int pnet_number_vformat(char *text, size_t size, const char *format, va_list args)
{
    locale_t before = pnet_locale_enter();
    int n = vsnprintf(text, size, format, args);
    pnet_locale_leave(before);
    return n;
}

int pnet_number_format(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = pnet_number_vformat(text, size, format, args);
    va_end(args);
    return n;
}

int pnet_number_write(FILE *f, const char *format, ...)
{
    locale_t before = pnet_locale_enter();
    va_list args;
    va_start(args, format);
    int n = vfprintf(f, format, args);
    va_end(args);
    pnet_locale_leave(before);
    return n;
}

const char *pnet_bytes_text(size_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    int u = 0;
    while (x >= 1024 && u < 4) {
        x /= 1024;
        u++;
    }
    pnet_number_format(text, 32, u ? "%.2f %s" : "%.0f %s", x, units[u]);
    return text;
}
