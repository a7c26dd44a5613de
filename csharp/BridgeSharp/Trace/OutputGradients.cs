using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Takes down the gradients of what comes out of layers, for each replica on its own.</summary>
/// <remarks>
/// They are put in one order in both languages, of the last output first: a gradient comes after all that it depends
/// on. A forward that came before another, with a loss of its own, comes before it. Spec: R33.4.
/// </remarks>
/// <param name="replicas">How many replicas there are.</param>
/// <param name="keeper">Takes the tensors down.</param>
internal sealed class OutputGradients(int replicas, Keeper keeper)
{
    private readonly List<(int Forward, int Output, Entry Entry)>[] taken = [.. Enumerable.Range(0, replicas).Select(_ => new List<(int, int, Entry)>())];
    private readonly int[] outputs = new int[replicas];
    private int forward;

    /// <summary>Take down the gradient of an output when the backward comes there.</summary>
    /// <param name="output">The record of the output.</param>
    /// <param name="tensor">The output.</param>
    /// <returns>The tensor to go on with.</returns>
    public Tensor Watch(Record output, Tensor tensor)
    {
        if (!tensor.requires_grad)
        {
            return tensor;
        }

        var (own, number) = (forward, outputs[output.replica]++);
        var record = output with { phase = "backward", kind = "gradient" };
        return GradientTap.Put(tensor, gradient => taken[output.replica].Add((own, number, keeper.Entry(record, gradient))));
    }

    /// <summary>Say that what is observed from here on belongs to another forward.</summary>
    public void NextForward() => forward++;

    /// <summary>Return and forget the gradients so far.</summary>
    public IReadOnlyList<Entry> Take()
    {
        Entry[] sorted = [.. taken.SelectMany(own => own.OrderBy(item => item.Forward).ThenByDescending(item => item.Output)).Select(item => item.Entry)];
        foreach (var own in taken)
        {
            own.Clear();
        }

        return sorted;
    }
}
