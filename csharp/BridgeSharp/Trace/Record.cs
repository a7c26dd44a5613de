using System.Runtime.InteropServices;
using BridgeSharp.Parallel;

namespace BridgeSharp.Trace;

/// <summary>What a record says of a tensor: dtype, shape, digest of its bytes, and summary.</summary>
/// <param name="dtype">PyTorch's name of the dtype.</param>
/// <param name="shape">The sizes.</param>
/// <param name="digest">XXH128 of its bytes, in hexadecimal digits.</param>
/// <param name="summary">What is kept of its values.</param>
/// <param name="file">Where the whole tensor is, below the folder of the trace, if it was asked for.</param>
internal sealed record Contents(string dtype, long[] shape, string digest, Summary summary, string? file = null);

/// <summary>One thing that was observed, or that could not be: then <c>unobserved</c> says why.</summary>
/// <remarks>Spec: R30.1.</remarks>
/// <param name="step">The step, from 0.</param>
/// <param name="phase">The phase of the step.</param>
/// <param name="replica">The replica.</param>
/// <param name="kind">What it is.</param>
/// <param name="name">The path of a layer, or the name of a parameter.</param>
internal sealed record Record(int step, string phase, int replica, string kind, string name)
{
    /// <summary>Which call of that name in this step.</summary>
    public int call { get; init; }

    /// <summary>Which of several tensors or values.</summary>
    public string part { get; init; } = "";

    /// <summary>The place in the order of execution.</summary>
    public long order { get; init; }

    /// <summary>Where in the user's code it was called, or null.</summary>
    public string? at { get; init; }

    /// <summary>The tensor, if it is one.</summary>
    public Contents? tensor { get; init; }

    /// <summary>The value, if it is no tensor.</summary>
    public object? value { get; init; }

    /// <summary>Why it was not observed, or null.</summary>
    public string? unobserved { get; init; }

    /// <summary>Return the line of the record, without what it does not say.</summary>
    public OrderedDictionary<string, object?> to_json()
    {
        OrderedDictionary<string, object?> line = new()
        {
            [nameof(order)] = order,
            [nameof(step)] = step,
            [nameof(phase)] = phase,
            [nameof(replica)] = replica,
            [nameof(kind)] = kind,
            [nameof(name)] = name,
            [nameof(call)] = call,
            [nameof(part)] = part,
        };
        if (at is not null)
        {
            line[nameof(at)] = at;
        }

        if (unobserved is not null)
        {
            line[nameof(unobserved)] = unobserved;
        }
        else if (tensor is null)
        {
            line[nameof(value)] = value is double number ? Number(number) : value;
        }
        else
        {
            Add(line, tensor);
        }

        return line;
    }

    /// <summary>Write what a record says of a tensor; numbers that JSON does not have come as text.</summary>
    private static void Add(OrderedDictionary<string, object?> line, Contents tensor)
    {
        var summary = tensor.summary;
        line["dtype"] = tensor.dtype;
        line["shape"] = tensor.shape;
        line["digest"] = tensor.digest;
        line["norm"] = Number(summary.norm);
        line["min"] = Number(summary.minimum);
        line["max"] = Number(summary.maximum);
        line["nan"] = summary.nan;
        line["inf"] = summary.infinite;
        if (summary.projections is not null)
        {
            line["projections"] = Convert.ToBase64String(MemoryMarshal.AsBytes<double>(summary.projections));
        }

        if (tensor.file is not null)
        {
            line["file"] = tensor.file;
        }
    }

    private static object Number(double value) => double.IsFinite(value) ? value : Text.Number(value);
}
