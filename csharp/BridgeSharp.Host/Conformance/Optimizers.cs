using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs an optimizer on given gradients: the parameters after every step.</summary>
internal static class Optimizers
{
    /// <summary>Run one case.</summary>
    public static Outcome Run(CaseRequest request)
    {
        var outcome = new Outcome();
        List<Parameter> parameters = [.. request.Tensors("parameters").Select(tensor => new Parameter(tensor))];
        using var optimizer = (optim.Optimizer)Binder.Call(Lookup.Methods(request.Name), [parameters], request.Arguments)!;
        var steps = ((List<object?>)request.More["gradients"]!).Select(step => ((List<object?>)step!).Cast<Tensor?>().ToList()).ToList();
        for (var step = 0; step < steps.Count; step++)
        {
            var gradients = steps[step];
            if ((bool)request.More["closure"]!)
            {
                optimizer.step(() => Quadratic(optimizer, parameters, gradients));
            }
            else
            {
                Assign(optimizer, parameters, gradients);
                optimizer.step();
            }

            outcome.Add($"step {step + 1}", parameters);
        }

        return outcome;
    }

    private static void Assign(optim.Optimizer optimizer, List<Parameter> parameters, List<Tensor?> gradients)
    {
        optimizer.zero_grad();
        foreach (var (parameter, gradient) in parameters.Zip(gradients))
        {
            if (gradient is not null)
            {
                parameter.grad = gradient.clone();
            }
        }
    }

    /// <summary>The loss of a closure: the squared distance from the given tensors.</summary>
    private static Tensor Quadratic(optim.Optimizer optimizer, List<Parameter> parameters, List<Tensor?> targets)
    {
        optimizer.zero_grad();
        var loss = parameters.Zip(targets).Select(pair => (pair.First - pair.Second!).square().sum()).Aggregate((sum, part) => sum + part);
        loss.backward();
        return loss;
    }
}
