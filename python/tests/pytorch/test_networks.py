"""The module lists of SpUNet, of PTv3's xCPE, of VoxelBackBone8x and VoxelResBackBone8x through pnet.torch.spconv agree with the
same lists of dense convolutions in float64: results and all gradients, in training and in evaluation."""

import unittest

import torch

import dense
import networks
import pnet.torch.spconv as spconv
import support


class Networks(support.Case):
    def check(self, make, x, limit, train=True):
        torch.manual_seed(2)
        net = make(spconv).train(train)
        for module in net.modules():  # numbers that a norm in evaluation does not leave as they are
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.uniform_(-0.1, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        return self.agrees(net, make(dense), x, limit)

    def test_sp_unet(self):
        x = support.tensor([32, 36, 34], 3, 0.03, 6, empty=[1])
        self.check(lambda sp: networks.sp_unet(sp, 6, 13, narrow=4), x, 2e-5)

    def test_xcpe(self):
        x = support.tensor([12, 11, 13], 2, 0.15, 16)
        self.check(lambda sp: networks.xcpe(sp, 16, 3), x, 2e-6)

    def test_voxel_backbone(self):
        x = support.tensor([25, 32, 24], 2, 0.05, 4)
        for residual in False, True:
            with self.subTest(residual=residual):
                self.check(lambda sp: networks.backbone_8x(sp, 4, residual, narrow=2), x, 2e-5)

    def test_one_site_and_an_empty_sample(self):
        one = torch.tensor([[1, 3, 9, 5]], dtype=torch.int32)
        few = support.sites([25, 32, 24], 3, 0.01, empty=[0, 2])
        for indices in one, few:
            x = support.tensor([25, 32, 24], 3, 0, 4, indices=indices)
            self.check(lambda sp: networks.sp_unet(sp, 4, 5, 8, (1,) * 8), x, 2e-5, train=False)
            self.check(lambda sp: networks.xcpe(sp, 4, 2), x, 2e-6, train=False)
        # a single site can fall between the strides of the detectors' backbones
        self.check(lambda sp: networks.backbone_8x(sp, 4, True, 4), support.tensor([25, 32, 24], 3, 0, 4, indices=few), 2e-5,
                   train=False)


if __name__ == "__main__":
    unittest.main()
