namespace BridgeSharp.Checkpoint;

/// <summary>Python's <c>collections.OrderedDict</c>, which a module's state dict is.</summary>
public sealed class OrderedDict : OrderedDictionary<object, object?>
{
    /// <summary>What PyTorch puts beside a state dict as <c>_metadata</c>: the versions of its modules; null without.</summary>
    public object? metadata { get; set; }
}
