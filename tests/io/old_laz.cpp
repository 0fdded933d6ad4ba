/* Compresses LAS records by version 1 of LASzip's items, for make_laz.py: old_laz FORMAT RECORD CHUNK RECORDS VLR POINTS
   CHUNK: points a chunk, 0: no chunks. RECORDS is read; VLR and POINTS, whose table is counted from 0, are written.
   Built against the sources of LASzip (https://github.com/LASzip/LASzip), by hand: no target of ours needs it. */
#include "laszip.hpp"
#include "laszipper.hpp"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    const int record = atoi(argv[2]), chunk = atoi(argv[3]);
    LASzip zip;
    LASzipper zipper;
    unsigned char *vlr;
    int vlr_size;
    if (!zip.setup((unsigned char)atoi(argv[1]), (unsigned short)record, chunk ? 2 : 1)) return 1;
    if (chunk && !zip.set_chunk_size((unsigned)chunk)) return 1;
    if (!zip.request_version(1) || !zip.pack(vlr, vlr_size)) return 1;
    FILE *records = fopen(argv[4], "rb"), *to = fopen(argv[5], "wb"),
         *points = fopen(argv[6], "wb+");
    if (!records || !to || !points || !zipper.open(points, &zip)) return 1;
    fwrite(vlr, 1, (size_t)vlr_size, to);
    std::vector<unsigned char> point((size_t)record);
    while (fread(point.data(), 1, point.size(), records) == point.size()) {
        std::vector<unsigned char *> items;
        unsigned char *at = point.data();
        for (int i = 0; i < zip.num_items; at += zip.items[i++].size) items.push_back(at);
        if (!zipper.write(items.data())) return 1;
    }
    return zipper.close() && fclose(to) == 0 && fclose(points) == 0 ? 0 : 1;
}
