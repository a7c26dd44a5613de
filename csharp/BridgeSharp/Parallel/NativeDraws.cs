using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Tells whether a layer of libtorch has dropout, which TorchSharp does not tell.</summary>
/// <remarks>
/// A copy of the layer on the CPU sees a sample of zeros in training mode: with dropout the random state moves. The
/// answer is kept, for the option cannot be changed. Where such layers cannot be copied, the answer is yes. Spec: R20.3.
/// </remarks>
internal static class NativeDraws
{
    private static readonly ConditionalWeakTable<nn.Module, object> Known = [];

    /// <summary>Tell whether a recurrent layer, an attention or a transformer draws in training; no other layer of libtorch does.</summary>
    public static bool InTraining(nn.Module layer)
        => layer is (RNN or LSTM or GRU or MultiheadAttention or Transformer
            or TransformerEncoderLayer or TransformerEncoder or TransformerDecoderLayer or TransformerDecoder)
            && (!NativeClone.IsSupported || (bool)Known.GetValue(layer, own => Try(own)));

    private static bool Try(nn.Module layer)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        using var copy = ModuleCopier.Copy(layer, Devices.Of(layer), CPU).to(float32);
        copy.train();
        using var state = random.get_rng_state();
        try
        {
            Run(copy);
            using var after = random.get_rng_state();
            return !after.bytes.SequenceEqual(state.bytes);
        }
        catch (ExternalException)
        {
            return true; // Its own forward will tell what is wrong.
        }
        finally
        {
            random.set_rng_state(state);
        }
    }

    /// <summary>Run a layer past its hooks on a sample of one step; a stack without layers has nothing to drop.</summary>
    private static object? Run(nn.Module layer)
    {
        if (Sample(layer, "weight_ih_l0", "in_proj_weight", "q_proj_weight") is not { } input)
        {
            return null;
        }

        return layer switch
        {
            RNN own => own.forward(input, null),
            LSTM own => own.forward(input),
            GRU own => own.forward(input),
            MultiheadAttention own => own.forward(input, Sample(own, "k_proj_weight") ?? input, Sample(own, "v_proj_weight") ?? input, null, false, null),
            Transformer own => own.forward(input, input),
            TransformerEncoderLayer own => own.forward(input),
            TransformerEncoder own => own.call(input),
            TransformerDecoderLayer own => own.call(input, input),
            TransformerDecoder own => own.call(input, input),
            _ => null,
        };
    }

    /// <summary>Make an input of the width that the first weight of one of these names takes.</summary>
    private static Tensor? Sample(nn.Module layer, params string[] names)
        => layer.named_parameters().Where(named => names.Contains(named.name.Split('.')[^1]) && named.parameter.dim() == 2)
            .Select(named => zeros(1, 1, named.parameter.size(1))).FirstOrDefault();
}
