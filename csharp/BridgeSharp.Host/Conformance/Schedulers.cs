using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.optim;
using static TorchSharp.torch.optim.lr_scheduler;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs a scheduler: the learning rate before and after every step, and the momentum.</summary>
internal static class Schedulers
{
    /// <summary>Run one case.</summary>
    public static Outcome Run(CaseRequest request)
    {
        var outcome = new Outcome();
        using var parameter = new Parameter(zeros(1));
        using var optimizer = SGD([parameter], (double)request.More["lr"]!, momentum: 0.9);
        var scheduler = Make(request.Name, request.Arguments, optimizer);
        var metrics = ((List<object?>?)request.More["metrics"])?.Cast<double>().ToList();
        List<double> rates = [optimizer.ParamGroups.Single().LearningRate];
        List<double> momenta = [Momentum(optimizer)];
        for (var step = 0; step < (int)(long)request.More["steps"]!; step++)
        {
            optimizer.step();
            if (metrics is null)
            {
                scheduler.step();
            }
            else
            {
                scheduler.step(metrics[step]);
            }

            rates.Add(optimizer.ParamGroups.Single().LearningRate);
            momenta.Add(Momentum(optimizer));
        }

        outcome.Tensors["rates"] = Outcome.Keep(tensor(rates, dtype: float64));
        outcome.Tensors["momenta"] = Outcome.Keep(tensor(momenta, dtype: float64));
        return outcome;
    }

    private static LRScheduler Make(string name, IReadOnlyList<Argument> arguments, Optimizer optimizer)
    {
        var own = arguments.Select(argument => argument.Names[0] == "schedulers" ? argument with { Value = Inner(argument.Value!, optimizer) } : argument);
        var overloads = Lookup.Methods(name);
        var takes = overloads[0].GetParameters()[0].ParameterType.IsInstanceOfType(optimizer);
        return (LRScheduler)Binder.Call(overloads, takes ? [optimizer] : [], [.. own])!;
    }

    /// <summary>Make the schedulers that another one takes.</summary>
    private static List<object?> Inner(object described, Optimizer optimizer)
        => [.. ((List<object?>)described).Cast<Dictionary<string, object?>>().Select(part => Make((string)part["scheduler"]!, Read(part), optimizer))];

    private static IReadOnlyList<Argument> Read(Dictionary<string, object?> part)
        => [.. ((List<object?>)part["arguments"]!).Cast<Dictionary<string, object?>>()
            .Select(argument => new Argument([.. ((List<object?>)argument["names"]!).Cast<string>()], argument["value"]))];

    private static double Momentum(Optimizer optimizer)
        => ((SGD.Options)((OptimizerHelper)optimizer).ParamGroups.Cast<ParamGroup>().Single().Options).momentum ?? 0;
}
