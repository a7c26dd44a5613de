using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Make one replica per device; replica 0 is the model itself.</summary>
    /// <remarks>
    /// So an optimizer on the model's parameters stays valid, and the model is not changed. The other replicas are
    /// copies with storage of their own and no gradients. What a function captured is copied where it leads back to the
    /// model, and shared where it does not. Spec: R4.1, R4.2, R4.3.
    /// </remarks>
    /// <param name="model">The model, on <c>devices[0]</c>.</param>
    /// <param name="devices">One per replica; a device may occur more than once.</param>
    /// <param name="factory">Makes a fresh model, for one that cannot be copied; it takes the model's state and flags.</param>
    /// <returns>The replicas, in the order of the devices; the caller disposes all but the first.</returns>
    /// <exception cref="ArgumentException">No device, a tensor of the model that is not on <c>devices[0]</c>, or what cannot be copied.</exception>
    public static IReadOnlyList<T> replicate<T>(T model, IReadOnlyList<Device> devices, Func<T>? factory = null)
        where T : nn.Module
    {
        Devices.Check("replicate", devices);
        foreach (var (name, tensor) in Registered.Tensors(model))
        {
            if (Devices.Differ(tensor.device, devices[0]))
            {
                throw new ArgumentException(
                    $"replicate: expected {name} on {Devices.Name(devices[0])}, got {Devices.Name(tensor.device)}");
            }
        }

        List<T> replicas = [model];
        foreach (var device in devices.Skip(1))
        {
            replicas.Add(factory is null ? ModuleCopier.Copy(model, devices[0], device) : FreshReplica.Make(factory, replicas, device));
        }

        return replicas;
    }
}
