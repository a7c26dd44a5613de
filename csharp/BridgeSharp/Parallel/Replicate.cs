using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Make one replica per device; replica 0 is the model itself.</summary>
    /// <remarks>
    /// So an optimizer on the model's parameters stays valid, and the model is not changed. The other replicas are
    /// deep copies with storage of their own and no gradients. Spec: R4.1, R4.2, R4.3.
    /// </remarks>
    /// <param name="model">The model, on <c>devices[0]</c>.</param>
    /// <param name="devices">One per replica; a device may occur more than once.</param>
    /// <returns>The replicas, in the order of the devices; the caller disposes all but the first.</returns>
    /// <exception cref="ArgumentException">No device, or a tensor of the model that is not on <c>devices[0]</c>.</exception>
    /// <exception cref="NotSupportedException">A field that cannot be copied; the message names it.</exception>
    public static IReadOnlyList<T> replicate<T>(T model, IReadOnlyList<Device> devices)
        where T : nn.Module
    {
        Devices.Check("replicate", devices);
        foreach (var (name, tensor) in model.named_parameters().Select(p => (p.name, (Tensor)p.parameter)).Concat(model.named_buffers()))
        {
            if (Devices.Differ(tensor.device, devices[0]))
            {
                throw new ArgumentException(
                    $"replicate: expected {name} on {Devices.Name(devices[0])}, got {Devices.Name(tensor.device)}");
            }
        }

        return [model, .. devices.Skip(1).Select(device => ModuleCopier.Copy(model, device))];
    }
}
