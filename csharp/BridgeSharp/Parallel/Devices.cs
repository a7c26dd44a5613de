using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What the verbs ask of devices.</summary>
internal static class Devices
{
    /// <summary>Check a list of devices; at least one is expected.</summary>
    public static void Check(string verb, IReadOnlyList<Device> devices)
    {
        if (devices.Count == 0)
        {
            throw new ArgumentException($"{verb}: expected at least 1 device, got 0");
        }
    }

    /// <summary>Name the device of a model: that of its first parameter or buffer, else the CPU.</summary>
    public static Device Of(nn.Module model)
        => model.parameters().Concat(model.buffers()).Select(tensor => tensor.device).FirstOrDefault() ?? CPU;

    /// <summary>Tell whether two devices differ; <c>cuda</c> stands for whichever GPU is current.</summary>
    public static bool Differ(Device actual, Device expected)
        => actual.type != expected.type || (expected.index >= 0 && actual.index >= 0 && actual.index != expected.index);

    /// <summary>Name a device as PyTorch does: <c>cpu</c>, <c>cuda:0</c>.</summary>
    public static string Name(Device device)
    {
        var type = device.type.ToString().ToLowerInvariant();
        return device.index < 0 ? type : $"{type}:{device.index}";
    }
}
