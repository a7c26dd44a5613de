using TorchSharp;
using static TorchSharp.torch;
using functional = TorchSharp.torch.nn.functional;

namespace BridgeSharp.Parity;

/// <summary>Whether two builds of libtorch compute the same bits: one build family.</summary>
public static class Family
{
    private static readonly OrderedDictionary<string, Func<Dictionary<string, Tensor>, Tensor>> Operations = new()
    {
        ["add_alpha"] = t => t["a"].add(t["b"], alpha: 0.3),
        ["lerp"] = t => t["a"].lerp(t["b"], tensor(0.1, dtype: t["a"].dtype)),
        ["addcmul"] = t => t["a"].addcmul(t["b"], t["b"], value: 0.001),
        ["addcdiv"] = t => t["a"].addcdiv(t["b"], t["p"], value: -0.01),
        ["sqrt"] = t => t["p"].sqrt(),
        ["exp"] = t => t["a"].exp(),
        ["tanh"] = t => t["a"].tanh(),
        ["sigmoid"] = t => t["a"].sigmoid(),
        ["sum"] = t => t["a"].sum(),
        ["mean"] = t => t["a"].mean([0]),
        ["log_softmax"] = t => functional.log_softmax(t["a"], 1),
        ["matmul"] = t => t["a"].matmul(t["m"]),
        ["linear"] = t => functional.linear(t["a"], t["b"]),
        ["conv2d"] = t => functional.conv2d(t["x"], t["w"]),
        ["avg_pool2d"] = t => functional.avg_pool2d(t["x"], 2),
        ["matmul_backward"] = t => Gradient(t["m"], m => t["a"].matmul(m)),
        ["conv2d_backward"] = t => Gradient(t["w"], w => functional.conv2d(t["x"], w)),
        ["cross_entropy_backward"] = t => Gradient(t["a"], a => functional.cross_entropy(a, t["y"])),
    };

    /// <summary>Run a battery of small operations on fixed inputs and digest each result.</summary>
    /// <remarks>Two builds whose digests are all equal, at equal threads, are of one build family. Spec: R12.1, R12.2.</remarks>
    /// <returns>A SHA-256 for each <c>operation.dtype</c>.</returns>
    public static OrderedDictionary<string, string> battery()
    {
        using var scope = NewDisposeScope();
        var digests = new OrderedDictionary<string, string>();
        foreach (var (name, result) in results())
        {
            digests[name] = Digest.digest([new(name.Split('.')[0], result)]);
        }

        return digests;
    }

    /// <summary>Run a battery of small operations on fixed inputs.</summary>
    /// <remarks>Spec: R12.1.</remarks>
    /// <returns>A result for each <c>operation.dtype</c>.</returns>
    public static OrderedDictionary<string, Tensor> results()
    {
        var results = new OrderedDictionary<string, Tensor>();
        foreach (var dtype in new[] { float32, float64 })
        {
            using var scope = NewDisposeScope();
            var inputs = Inputs(dtype);
            foreach (var (name, operation) in Operations)
            {
                results[$"{name}.{Digest.dtype_name(dtype)}"] = operation(inputs).MoveToOuterDisposeScope();
            }
        }

        return results;
    }

    /// <summary>Draw the inputs: odd sizes, so that vector loops have a tail.</summary>
    private static Dictionary<string, Tensor> Inputs(ScalarType dtype)
    {
        using var generator = new Generator(20);
        var inputs = new Dictionary<string, Tensor>
        {
            ["a"] = Draw(67, 131),
            ["b"] = Draw(67, 131),
            ["m"] = Draw(131, 45),
            ["x"] = Draw(3, 5, 19, 17),
            ["w"] = Draw(7, 5, 3, 3),
        };
        inputs["p"] = inputs["b"].abs().add(0.5);
        inputs["y"] = arange(67) % 131;
        return inputs;

        Tensor Draw(params long[] shape) => randn(shape, dtype: float32, generator: generator).to(dtype);
    }

    /// <summary>Differentiate the sum of a function's squares by its weight.</summary>
    private static Tensor Gradient(Tensor weight, Func<Tensor, Tensor> function)
    {
        var leaf = weight.clone().requires_grad_();
        var output = function(leaf);
        output.mul(output).sum().backward();
        return leaf.grad!;
    }
}
