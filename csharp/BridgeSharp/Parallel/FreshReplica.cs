using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Makes replicas by a factory, for a model that cannot be copied.</summary>
/// <remarks>Spec: R4.9.</remarks>
internal static class FreshReplica
{
    /// <summary>Make a model with a factory and give it the state and the flags of replica 0.</summary>
    /// <exception cref="ArgumentException">A factory that makes another model, or one with tensors that are in use.</exception>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype, listed.</exception>
    public static T Make<T>(Func<T> factory, IReadOnlyList<T> replicas, Device device)
        where T : nn.Module
    {
        var replica = Called(factory);
        CheckFresh(replica, replicas);
        StateDict.Load(replica, StateDict.Of(replicas[0]).ToDictionary());
        TakeBuffers(replica, replicas[0]);
        TakeFlags(replica, replicas[0]);
        return replica.to(device);
    }

    /// <summary>Call a factory; what it draws is drawn from no stream of the caller's.</summary>
    private static T Called<T>(Func<T> factory)
    {
        using var random = get_rng_state();
        try
        {
            return factory();
        }
        finally
        {
            set_rng_state(random);
        }
    }

    private static void CheckFresh(nn.Module replica, IReadOnlyList<nn.Module> replicas)
    {
        var used = replicas.SelectMany(Registered.Tensors).Select(named => TensorCopier.Identity(named.Tensor)).ToHashSet();
        foreach (var (name, tensor) in Registered.Tensors(replica))
        {
            if (used.Contains(TensorCopier.Identity(tensor)))
            {
                throw new ArgumentException($"replicate: expected a fresh model from factory, got {name} of another replica");
            }
        }
    }

    /// <summary>Take the buffers that no state dict has, too.</summary>
    private static void TakeBuffers(nn.Module replica, nn.Module model)
    {
        using var mode = no_grad();
        var own = Registered.Buffers(replica).ToDictionary();
        foreach (var (name, buffer) in Registered.Buffers(model))
        {
            var (expected, actual) = (Kind(buffer), own.TryGetValue(name, out var other) ? Kind(other) : "none");
            if (expected != actual)
            {
                throw new ArgumentException($"replicate: expected buffer {name} of {expected} from factory, got {actual}");
            }

            other!.copy_(buffer);
        }
    }

    private static void TakeFlags(nn.Module replica, nn.Module model)
    {
        var parameters = Registered.Named(replica).ToDictionary();
        foreach (var (name, parameter) in Registered.Named(model))
        {
            Found(parameters, "parameter", name).requires_grad = parameter.requires_grad;
        }

        NativeModule.SetMode(replica, model.training);
        var modules = replica.named_modules().DistinctBy(named => named.name).ToDictionary();
        foreach (var (name, module) in model.named_modules())
        {
            NativeModule.SetMode(Found(modules, "module", name), module.training);
        }
    }

    private static T Found<T>(Dictionary<string, T> own, string kind, string name)
        where T : class => own.GetValueOrDefault(name)
            ?? throw new ArgumentException($"replicate: expected {kind} {name} from factory, got none");

    private static string Kind(Tensor tensor) => $"shape {Text.Shape(tensor.shape)} and dtype {Digest.dtype_name(tensor.dtype)}";
}
