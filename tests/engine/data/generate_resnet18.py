#!/usr/bin/python3
"""Writes resnet18.txt: what PyTorch makes, in float64, of a narrow ResNet-18 with torchvision's structure and names.

Weights and records are counted out (`counted`), here and in resnet18_test.cpp alike, so that nothing large is stored. Lines:
"loss VALUE", "evaluation_loss VALUE", and for each parameter, in PyTorch's order, "NAME SIZE NORM PRODUCT": size, norm of its
gradient, and the gradient's product with counted values, which any wrong element changes.

Run with an interpreter that has torch (written with 1.13, CPU):
    python3 tests/engine/data/generate_resnet18.py > tests/engine/data/resnet18.txt
"""
import torch
from torch import nn

WIDTH, CLASSES, RECORDS, SIDE = 4, 10, 4, 16
torch.set_num_threads(1)


def counted(stream, size):
    """Values in [-1, 1) without pattern, the same wherever they are computed: they are whole numbers / 2^31."""
    i = torch.arange(size, dtype=torch.int64) + stream * 1000003
    i = i * 2654435761 % 4294967296
    i = (i ^ (i >> 15)) * 2246822519 % 4294967296
    i = (i ^ (i >> 13)) * 3266489917 % 4294967296
    return (i ^ (i >> 16)).double() / 2147483648 - 1


def placed(stream, tensor, scale, middle=0.0):
    values = (middle + scale * counted(stream, tensor.numel())).float().double()
    tensor.data = values.reshape(tensor.shape)


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, WIDTH, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        channels = WIDTH
        for stage in range(4):
            width, stride = WIDTH << stage, 2 if stage else 1
            setattr(self, f"layer{stage + 1}", nn.Sequential(Block(channels, width, stride), Block(width, width, 1)))
            channels = width
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


model = ResNet18()
for stream, (name, parameter) in enumerate(model.named_parameters()):
    if parameter.dim() > 1:
        placed(stream, parameter, (3 / parameter[0].numel()) ** 0.5)
    else:
        placed(stream, parameter, 0.5, 1.0 if "weight" in name else 0.0)
model = model.double()
records = torch.empty(RECORDS, 1, SIDE, SIDE).double()
placed(1000, records, 2.0)
labels = torch.arange(RECORDS) * 3 % CLASSES
loss = nn.functional.cross_entropy(model(records), labels, reduction="sum")
loss.backward()
print(f"loss {loss.item():.17g}")
print(f"evaluation_loss {nn.functional.cross_entropy(model.eval()(records), labels, reduction='sum').item():.17g}")
for stream, (name, parameter) in enumerate(model.named_parameters()):
    gradient = parameter.grad.reshape(-1)
    product = gradient @ counted(2000 + stream, gradient.numel())
    print(f"{name} {gradient.numel()} {gradient.norm().item():.17g} {product.item():.17g}")
