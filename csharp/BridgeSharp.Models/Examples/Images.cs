using BridgeSharp.Data;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Examples;

/// <summary>Images to train and to test: Fashion-MNIST, or drawn ones.</summary>
internal static class Images
{
    private const int Batch = 64, Tested = 1000, Drawn = 3000, Classes = 10, Side = 28, Spot = 4;

    /// <summary>Read Fashion-MNIST, to train and to test; where it is not here, draw images.</summary>
    public static (object Data, (Tensor Images, Tensor Labels) Test) read(Setting setting, Action<string> say)
    {
        try
        {
            var train = new FashionMnist(null, train: true, setting.scalar_type);
            using var test = new FashionMnist(null, train: false, setting.scalar_type);
            using var indices = arange(Tested);
            say("data: Fashion-MNIST");
            return (train, test.batch(indices));
        }
        catch (FileNotFoundException)
        {
            say("data: drawn, for Fashion-MNIST is not here");
            var (images, labels) = drawn(setting);
            return ((images[Tested..], labels[Tested..]), (images[..Tested], labels[..Tested]));
        }
    }

    /// <summary>Draw images around the patterns of their classes, of spots that outlast the pooling.</summary>
    public static (Tensor Images, Tensor Labels) drawn(Setting setting)
    {
        using var scope = NewDisposeScope();
        using var draw = new Generator((ulong)setting.seed);
        var labels = randint(Classes, [Drawn], generator: draw);
        var spots = randn([Classes, 1, Side / Spot, Side / Spot], generator: draw);
        var patterns = spots.repeat_interleave(Spot, 2).repeat_interleave(Spot, 3);
        var noise = randn([Drawn, 1, Side, Side], generator: draw);
        return scope.MoveToOuter((patterns[labels] + noise).to(setting.scalar_type), labels);
    }

    /// <summary>Yield batches, epoch after epoch; each is disposed when the next one is taken.</summary>
    public static IEnumerable<(Tensor Images, Tensor Labels)> batches(object data, long seed)
    {
        var loader = new Loader<(Tensor, Tensor)>(data, Batch, seed: seed, dispose_batches: true);
        while (true)
        {
            foreach (var batch in loader)
            {
                yield return batch;
            }
        }
    }
}
