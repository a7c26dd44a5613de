using System.Runtime.CompilerServices;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>What schedulers keep in the parameter groups of an optimizer, as in PyTorch.</summary>
/// <remarks>
/// PyTorch's groups are dictionaries, to which schedulers add <c>initial_lr</c>, and <see cref="OneCycleLR"/> and
/// <see cref="CyclicLR"/> also <c>max_lr</c>, <c>min_lr</c>, <c>max_momentum</c> and <c>base_momentum</c>. They are part
/// of the optimizer's state, not of the scheduler's. They live as long as the group.
/// </remarks>
public static class GroupEntries
{
    private static readonly ConditionalWeakTable<optim.ILearningRateController, Dictionary<string, double>> All = [];

    /// <summary>Return the entries of a group (an alias: changing them changes the group's).</summary>
    /// <param name="group">One of an optimizer's.</param>
    /// <returns>Names and values, in the order in which they came.</returns>
    public static IDictionary<string, double> of(optim.ILearningRateController group) => All.GetOrCreateValue(group);

    /// <summary>Add an entry unless it is there.</summary>
    internal static void Default(optim.ILearningRateController group, string name, double value)
    {
        if (!of(group).ContainsKey(name))
        {
            Set(group, name, value);
        }
    }

    /// <summary>Set an entry; the initial rate is also TorchSharp's.</summary>
    internal static void Set(optim.ILearningRateController group, string name, double value)
    {
        of(group)[name] = value;
        if (name == "initial_lr")
        {
            group.InitialLearningRate = value;
        }
    }
}
