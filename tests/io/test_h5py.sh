# HDF5 files as h5py writes them: pnetc reads equal values, with the system's libhdf5 and with the one that h5py brings, and refuses
# what it cannot read. Takes the Python that PNET_READERS_PYTHON names, which sh tests/venv.sh readers makes, or another one.
. tests/cli/common.sh
needs python3
if ! "${PNET_READERS_PYTHON:-python3}" -c 'import h5py, numpy' 2>/dev/null; then
    echo "${PNET_READERS_PYTHON:-python3} has no h5py: sh tests/venv.sh readers makes one that has"
    [ -z "${PNET_READERS_PYTHON:-}" ] && exit 77
    exit 1
fi
python=${PNET_READERS_PYTHON:-python3}

cat >"$work/write.py" <<'END'
import h5py, numpy as np, sys

folder = sys.argv[1]
random = np.random.default_rng(1)
xyz = random.normal(size=(500, 3)).astype('f4')
half = random.normal(size=500).astype('f2')
count = random.integers(-2**40, 2**40, 500)
colour = random.integers(0, 256, (500, 3)).astype('u1')
packed = dict(chunks=(64, 3), compression='gzip', shuffle=True, fletcher32=True)

def write(name, **options):
    return h5py.File(f'{folder}/{name}.h5', 'w', **options)

def fill(f, xyz, **options):
    f.create_dataset('scan/points', data=xyz, **options)
    f.create_dataset('scan/half', data=half.astype('>f2'), chunks=(7,), compression='lzf', shuffle=True)
    f['scan/count'] = count.astype('>i8')
    f.create_dataset('scan/rgb', data=colour, chunks=True, compression='gzip', compression_opts=9)
    f['scan/inside'] = xyz[:, 0] > 0
    f['scan/words'] = ['word'] * 500
    f['scan'].attrs['unit'] = 'm'

with write('packed') as f: fill(f, xyz.astype('>f4'), **packed)
with write('grown', libver=('v110', 'v110')) as f: fill(f, xyz, maxshape=(None, 3), **packed)
with write('edges', track_order=True) as f: fill(f, xyz, chunks=(499, 2), compression='lzf')
with write('plain', userblock_size=0) as f: fill(f, xyz)
records = np.zeros(500, [('words', 'S4'), ('xyz', '>f4', 3), ('half', 'f2'), ('count', 'i8'), ('rgb', 'u1', 3), ('inside', '?')])
for name, values in ('xyz', xyz), ('half', half), ('count', count), ('rgb', colour), ('inside', xyz[:, 0] > 0):
    records[name] = values
with write('records') as f: f.create_dataset('scan', data=records, chunks=(100,), compression='gzip')

with write('nbit') as f: f.create_dataset('points', data=count.reshape(-1, 4)[:, :3], scaleoffset=True, chunks=(5, 3))
with write('outside') as f: f['points'] = h5py.ExternalLink('plain.h5', '/scan/points')
with write('virtual') as f:
    layout = h5py.VirtualLayout(shape=(500, 3), dtype='f4')
    layout[:] = h5py.VirtualSource(f'{folder}/plain.h5', 'scan/points', shape=(500, 3))
    f.create_virtual_dataset('points', layout)
with write('bomb') as f: f.create_dataset('points', shape=(2**26, 3), dtype='f8', chunks=(2**16, 3), compression='gzip')
np.save(f'{folder}/expected.npy', np.column_stack([xyz, half, count, colour, xyz[:, 0] > 0]).astype('f8'))
END
# The text that pnetc writes has the digits that make the same number of its type again.
cat >"$work/compare.py" <<'END'
import csv, numpy as np, sys

rows = list(csv.DictReader(open(sys.argv[1])))
names = ['x', 'y', 'z', 'half', 'count', 'rgb_0', 'rgb_1', 'rgb_2', 'inside']
got = np.array([[float(row[name]) for name in names] for row in rows])
expected = np.load(sys.argv[2])
got[:, :4] = got[:, :4].astype('f4')
assert got.shape == expected.shape and (got == expected).all(), np.argwhere(got != expected)[:5]
END
"$python" "$work/write.py" "$work" || exit 1
library=$("$python" -c 'import glob, h5py, os
print(*glob.glob(os.path.dirname(h5py.__file__) + ".libs/libhdf5-*"), sep="\n")' | head -n 1)
: "${library:?h5py brings no libhdf5}"

# A network that reads nothing but positions: infer writes its result beside all that a file has.
cat >"$work/model.pnet" <<'END'
pnet 1
param classes = 2
input cloud {
  xyz   : position
  label : class[classes] per point
}
net n(p: cloud) { return ones(level(p.xyz)) -> linear(classes) }
y = n(cloud)
loss ce = cross_entropy(y, cloud.label)
END
printf '0 0 0 0\n1 1 1 1\n' >"$work/a.xyz"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b]\ncolumns: [x, y, z, label]\ntrain: [a.xyz]\n' >"$work/dataset.yaml"
printf 'data: .\nsteps: 1\n' >"$work/run.yaml"
run 0 train "$work/model.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
read_file() { run "$1" infer "$work/model.pnet" --weights "$work/run" --input "$work/$2.h5" -o "$work/out.csv" -q -j 1; }
for library in '' "$library"; do
    export PNET_HDF5_LIBRARY=$library
    for file in packed grown edges plain records; do
        read_file 0 $file || continue
        check "$file, read by ${library:-the system}" "$python" "$work/compare.py" "$work/out.csv" "$work/expected.npy"
    done
    read_file 4 nbit
    says 'points: packed by the filter 6'
    read_file 4 outside
    says 'points: a link to another file'
    read_file 4 virtual
    says 'points: a virtual array'
    read_file 4 bomb
    says 'points: 201326592 items of 8 bytes: the arrays of a file of '
done
finish
