using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Mutants;

/// <summary>A training loop: what it trains, and one step of it.</summary>
public abstract class Loop : IDisposable
{
    /// <summary>The replicas; one, unless the loop trains several.</summary>
    public IReadOnlyList<nn.Module<Tensor, Tensor>> replicas { get; protected init; } = [];

    /// <summary>The model, replica 0.</summary>
    public nn.Module<Tensor, Tensor> model => replicas[0];

    /// <summary>Names and tensors (aliases); those of the other replicas have their index before the name.</summary>
    public OrderedDictionary<string, Tensor> state
    {
        get
        {
            var tensors = new OrderedDictionary<string, Tensor>();
            foreach (var (index, replica) in replicas.Index())
            {
                foreach (var (name, tensor) in Weights.Of(replica))
                {
                    tensors.Add(index == 0 ? name : $"{index}: {name}", tensor);
                }
            }

            return tensors;
        }
    }

    /// <summary>Train on one batch and return its loss.</summary>
    public abstract double step(Tensor inputs, Tensor targets);

    public virtual void Dispose()
    {
        foreach (var replica in replicas)
        {
            replica.Dispose();
        }

        GC.SuppressFinalize(this);
    }

    /// <summary>Make a port of this assembly by its name, in float64.</summary>
    protected static nn.Module<Tensor, Tensor> Port(string name, string fault)
    {
        var type = typeof(Loop).Assembly.GetType($"BridgeSharp.Mutants.{name}", throwOnError: true)!;
        return ((nn.Module<Tensor, Tensor>)Activator.CreateInstance(type, fault)!).to(float64);
    }

    /// <summary>List the parameters, of a port that registers none too.</summary>
    protected static IEnumerable<Parameter> Parameters(nn.Module model)
        => model is UnregisteredMLP own ? own.Weights() : model.parameters();
}
