"""Networks of Pointcept and OpenPCDet by their module lists, for spconv or what stands in for it (`sp`); `narrow` divides all
channels."""

from functools import partial

import torch
from torch import nn

norm = partial(nn.BatchNorm1d, eps=1e-3, momentum=0.01)


def residual_block(sp, cin, cout, key, bias, proj):
    """Two submanifold convolutions with norms, around which the input is added."""
    class Block(sp.SparseModule):
        def __init__(self):
            super().__init__()
            self.conv1 = sp.SubMConv3d(cin, cout, kernel_size=3, stride=1, padding=1, bias=bias, indice_key=key)
            self.bn1 = norm(cout)
            self.conv2 = sp.SubMConv3d(cout, cout, kernel_size=3, stride=1, padding=1, bias=bias, indice_key=key)
            self.bn2 = norm(cout)
            self.relu = nn.ReLU()
            if proj:
                self.proj = sp.SparseSequential(nn.Identity()) if cin == cout else sp.SparseSequential(
                    sp.SubMConv3d(cin, cout, kernel_size=1, bias=False), norm(cout))

        def forward(self, x):
            y = self.conv1(x)
            y = y.replace_feature(self.relu(self.bn1(y.features)))
            y = self.conv2(y)
            y = y.replace_feature(self.bn2(y.features))
            added = self.proj(x) if proj else x
            return y.replace_feature(self.relu(y.features + added.features))

    return Block()


def sp_unet(sp, cin, classes, narrow=1, layers=(2, 3, 4, 6, 2, 2, 2, 2)):
    """SpUNet of Pointcept: four levels down by kernels of 2, and back by inverse convolutions with skips."""
    channels = [c // narrow for c in (32, 64, 128, 256, 256, 128, 96, 96)]
    base, levels = 32 // narrow, len(layers) // 2

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv_input = sp.SparseSequential(
                sp.SubMConv3d(cin, base, kernel_size=5, padding=1, bias=False, indice_key="stem"), norm(base), nn.ReLU())
            self.down, self.enc, self.up, self.dec = (nn.ModuleList() for _ in range(4))
            for s in range(levels):
                fine, coarse = ([base, *channels][s], channels[s])
                wide, after = channels[-s - 2], channels[-s - 1]
                self.down.append(sp.SparseSequential(
                    sp.SparseConv3d(fine, coarse, kernel_size=2, stride=2, bias=False, indice_key=f"spconv{s + 1}"),
                    norm(coarse), nn.ReLU()))
                self.enc.append(sp.SparseSequential(*(
                    residual_block(sp, coarse, coarse, f"subm{s + 1}", False, True) for _ in range(layers[s]))))
                self.up.append(sp.SparseSequential(
                    sp.SparseInverseConv3d(wide, after, kernel_size=2, bias=False, indice_key=f"spconv{s + 1}"),
                    norm(after), nn.ReLU()))
                self.dec.append(sp.SparseSequential(*(
                    residual_block(sp, after + fine if i == 0 else after, after, f"subm{s}", False, True)
                    for i in range(layers[-s - 1]))))
            self.final = sp.SubMConv3d(channels[-1], classes, kernel_size=1, padding=1, bias=True)

        def forward(self, x):
            x = self.conv_input(x)
            skips = [x]
            for down, enc in zip(self.down, self.enc):
                x = enc(down(x))
                skips.append(x)
            skips.pop()
            for up, dec in zip(reversed(self.up), reversed(self.dec)):
                x = up(x)
                x = dec(x.replace_feature(torch.cat((x.features, skips.pop().features), dim=1)))
            return self.final(x)

    return Net()


def xcpe(sp, channels, blocks):
    """The conditional position encoding of PTv3: convolution, linear layer and norm around which the features are added. The
    sparse tensor of a level is kept, and gets new features at each block."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = sp.SubMConv3d(channels, channels, kernel_size=5, padding=1, bias=False, indice_key="stem")
            self.cpe = nn.ModuleList(nn.ModuleList([
                sp.SubMConv3d(channels, channels, kernel_size=3, bias=True, indice_key="stage0"),
                nn.Linear(channels, channels), nn.LayerNorm(channels)]) for _ in range(blocks))

        def forward(self, x):
            x = self.stem(x)
            x = x.replace_feature(nn.functional.gelu(x.features))
            for conv, linear, after in self.cpe:
                y = conv(x)
                x = y.replace_feature(x.features + after(linear(y.features)))
            return x

    return Net()


def backbone_8x(sp, cin, residual, narrow=1):
    """VoxelBackBone8x of OpenPCDet, and VoxelResBackBone8x with `residual`; then the bird's eye view of its detectors."""
    last = 128 if residual else 64
    c1, c2, c3, c4, c5 = (c // narrow for c in (16, 32, 64, last, 128))

    def block(a, b, key, **named):
        conv = sp.SparseConv3d if named else sp.SubMConv3d
        return sp.SparseSequential(conv(a, b, 3, bias=False, indice_key=key, **named), norm(b), nn.ReLU())

    def level(a, b, number, padding):
        def same():
            return residual_block(sp, b, b, f"res{number}", True, False) if residual else block(b, b, f"subm{number}")
        return sp.SparseSequential(block(a, b, f"spconv{number}", stride=2, padding=padding), same(), same())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv_input = sp.SparseSequential(
                sp.SubMConv3d(cin, c1, 3, padding=1, bias=False, indice_key="subm1"), norm(c1), nn.ReLU())
            self.conv1 = sp.SparseSequential(
                *(residual_block(sp, c1, c1, "res1", True, False) for _ in range(2))) if residual else block(c1, c1, "subm1")
            self.conv2 = level(c1, c2, 2, 1)
            self.conv3 = level(c2, c3, 3, 1)
            self.conv4 = level(c3, c4, 4, (0, 1, 1))
            self.conv_out = sp.SparseSequential(
                sp.SparseConv3d(c4, c5, (3, 1, 1), stride=(2, 1, 1), padding=0, bias=False, indice_key="spconv_down2"),
                norm(c5), nn.ReLU())

        def forward(self, x):
            x = self.conv_out(self.conv4(self.conv3(self.conv2(self.conv1(self.conv_input(x))))))
            grid = x.dense()
            return grid.reshape(grid.shape[0], -1, *grid.shape[3:])

    return Net()
