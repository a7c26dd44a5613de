using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What the verbs ask of devices.</summary>
public static class Devices
{
    /// <summary>Read a list of devices; at least one is expected.</summary>
    /// <param name="verb">The caller, named in the error.</param>
    /// <param name="devices">Names such as <c>"cpu"</c> or <c>"cuda:1"</c>.</param>
    /// <returns>The devices.</returns>
    /// <exception cref="ArgumentException">The list is empty, or a device is not one of this machine.</exception>
    public static IReadOnlyList<Device> Read(string verb, IReadOnlyList<string> devices)
    {
        var read = devices.Select(name => Read(verb, name)).ToList();
        Check(verb, read);
        return read;
    }

    /// <summary>Check a list of devices; at least one is expected.</summary>
    internal static void Check(string verb, IReadOnlyList<Device> devices)
    {
        if (devices.Count == 0)
        {
            throw new ArgumentException($"{verb}: expected at least 1 device, got 0");
        }

        foreach (var device in devices.Where(device => device.type == DeviceType.CUDA))
        {
            if (Math.Max(device.index, 0) >= cuda.device_count())
            {
                throw new ArgumentException(
                    $"{verb}: expected device {Name(device)} on this machine, got {cuda.device_count()} GPUs");
            }
        }
    }

    private static Device Read(string verb, string name)
    {
        var parts = name.Split(':');
        var index = -1;
        var known = parts[0] is "cpu" or "cuda" && (parts.Length == 1 || (parts.Length == 2 && int.TryParse(parts[1], out index) && index >= 0));
        return known
            ? new Device(parts[0] == "cuda" ? DeviceType.CUDA : DeviceType.CPU, index)
            : throw new ArgumentException($"{verb}: expected a device such as cpu or cuda:0, got {name}");
    }

    /// <summary>Name the device of a model: that of its first parameter or buffer, else the CPU.</summary>
    internal static Device Of(nn.Module model)
        => model.parameters().Concat(model.buffers()).Select(tensor => tensor.device).FirstOrDefault() ?? CPU;

    /// <summary>Tell whether two devices differ; <c>cuda</c> stands for whichever GPU is current.</summary>
    internal static bool Differ(Device actual, Device expected)
        => actual.type != expected.type || (expected.index >= 0 && actual.index >= 0 && actual.index != expected.index);

    /// <summary>Name a device as PyTorch does: <c>cpu</c>, <c>cuda:0</c>.</summary>
    internal static string Name(Device device)
    {
        var type = device.type.ToString().ToLowerInvariant();
        return device.index < 0 ? type : $"{type}:{device.index}";
    }
}
