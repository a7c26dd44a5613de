using BridgeSharp.Parallel;
using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>The names of devices.</summary>
[Collection(nameof(Serial))]
public sealed class DevicesTests
{
    public static TheoryData<string> Cases => Vectors.Names("devices");

    /// <summary>Devices are read, or refused in the words of the vectors. Spec: R1.5, R1.8.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        var entry = Vectors.Find("devices", name);
        string[] names = [.. entry.Items("devices").Select(device => device.GetString()!)];
        Vectors.Check(entry, () => Assert.Equal(names, Devices.Read("scatter", names).Select(Devices.Name)));
    }

    /// <summary>The error says which, and how many there are. Spec: R1.8.</summary>
    [Fact]
    public void A_gpu_that_is_not_there_is_refused()
    {
        using var scope = NewDisposeScope();
        var count = cuda.device_count();
        var error = Assert.Throws<ArgumentException>(() => scatter(ones(2), [CPU, new Device(DeviceType.CUDA, count)]));
        Assert.Equal($"scatter: expected device cuda:{count} on this machine, got {count} GPUs", error.Message);
    }
}
