using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Copying the modules whose parameters and options live in libtorch.</summary>
[Collection(nameof(Serial))]
public sealed class NativeModuleTests
{
    private static readonly Dictionary<string, (Func<nn.Module> Make, Func<nn.Module, Tensor> Call)> Kinds = new()
    {
        ["LSTM with dropout, both directions"] = (() => nn.LSTM(3, 4, 2, dropout: 0.3, bidirectional: true), Lstm),
        ["LSTM without bias, batch first"] = (() => nn.LSTM(3, 4, bias: false, batchFirst: true), Lstm),
        ["GRU with dropout"] = (() => nn.GRU(3, 4, 3, dropout: 0.6), module => ((GRU)module).call(Sequence(module, 3)).Item1),
        ["RNN of tanh"] = (() => nn.RNN(3, 4, 2, dropout: 0.1), Rnn),
        ["RNN of ReLU"] = (() => nn.RNN(3, 4, 2, nn.NonLinearities.ReLU), Rnn),
        ["LSTMCell"] = (() => nn.LSTMCell(3, 4), module => ((LSTMCell)module).call(Sequence(module, 3)[0], (State(module, 0), State(module, 1))).Item2),
        ["GRUCell"] = (() => nn.GRUCell(3, 4, bias: false), module => ((GRUCell)module).call(Sequence(module, 3)[0], State(module, 1))),
        ["RNNCell"] = (() => nn.RNNCell(3, 4, nn.NonLinearities.ReLU), module => ((RNNCell)module).call(Sequence(module, 3)[0], State(module, 1))),
        ["Embedding with padding and a largest norm"] = (() => nn.Embedding(5, 4, padding_idx: 1, max_norm: 0.5), Embedded),
        ["Embedding by frequency"] = (() => nn.Embedding(5, 4, scale_grad_by_freq: true), Embedded),
        ["Embedding with sparse gradients"] = (() => nn.Embedding(5, 4, sparse: true), Embedded),
        ["Embedding, pretrained"] = (() => nn.Embedding_from_pretrained(arange(20, dtype: float32).reshape(5, 4)), Embedded),
        ["EmbeddingBag of sums"] = (() => nn.EmbeddingBag(5, 4, mode: EmbeddingBagMode.Sum, padding_index: 2), Bagged),
        ["EmbeddingBag of maxima"] = (() => nn.EmbeddingBag(5, 4, mode: EmbeddingBagMode.Max), Bagged),
        ["MultiheadAttention"] = (() => nn.MultiheadAttention(8, 4, 0.3, add_bias_kv: true), Attended),
        ["Transformer"] = (() => nn.Transformer(8, 2, 1, 2, 16, 0.3, nn.Activations.GELU), module => ((Transformer)module).call(Sequence(module, 8), Sequence(module, 8))),
        ["TransformerEncoderLayer"] = (() => nn.TransformerEncoderLayer(8, 4, 16, 0.2), module => ((TransformerEncoderLayer)module).forward(Sequence(module, 8))),
        ["TransformerEncoder"] = (() => nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 4, 16, 0.2), 2), module => ((TransformerEncoder)module).call(Sequence(module, 8))),
        ["TransformerDecoderLayer"] = (() => nn.TransformerDecoderLayer(8, 2, 16, 0.2), module => ((TransformerDecoderLayer)module).call(Sequence(module, 8), Sequence(module, 8))),
        ["TransformerDecoder"] = (() => nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.2), 2), module => ((TransformerDecoder)module).call(Sequence(module, 8), Sequence(module, 8))),
    };

    public static TheoryData<string> Names => [.. Kinds.Keys];

    /// <summary>A copy has the same options: the same draws, outputs and gradients in training, the same outputs in evaluation. Spec: R4.6.</summary>
    [Theory]
    [MemberData(nameof(Names))]
    public void Copies_compute_the_same(string name)
    {
        using var scope = NewDisposeScope();
        var (make, call) = Kinds[name];
        foreach (var type in new[] { float32, float64 })
        {
            var model = make().to(type);
            AssertSame(model, replicate(model, [CPU, CPU])[1], call);
            model.eval();
            AssertSame(model, replicate(model, [CPU, CPU])[1], call);
        }
    }

    /// <summary>A copy trains without its original, and what is frozen stays so. Spec: R4.1, R4.2, R4.6.</summary>
    [Fact]
    public void Copies_train_independently()
    {
        using var scope = NewDisposeScope();
        var model = nn.LSTM(3, 4);
        model.get_parameter("bias_ih_l0")!.requires_grad_(false);
        var before = model.parameters().Select(Same.Bits).ToList();

        var copy = replicate(model, [CPU, CPU])[1];
        using var optimizer = new Optim.SGD(copy.parameters(), lr: 1);
        Lstm(copy).sum().backward();
        optimizer.step();

        Assert.Equal(before, model.parameters().Select(Same.Bits));
        var moved = copy.named_parameters().Where(named => !Same.Bits(named.parameter).SequenceEqual(Same.Bits(model.get_parameter(named.name)!)));
        Assert.Equal(["weight_ih_l0", "weight_hh_l0", "bias_hh_l0"], moved.Select(named => named.name));
        Assert.NotEqual(Same.Bits(Lstm(model)), Same.Bits(Lstm(copy)));
    }

    /// <summary>A copy can be moved to another dtype as its original can. Spec: R4.6.</summary>
    [Fact]
    public void Copies_can_be_converted()
    {
        using var scope = NewDisposeScope();
        var copy = replicate(nn.GRU(3, 4, 3), [CPU, CPU])[1].to(float64);

        Assert.All(copy.parameters(), parameter => Assert.Equal(float64, parameter.dtype));
        Assert.Equal(float64, Kinds["GRU with dropout"].Call(copy).dtype);
    }

    /// <summary>A copy lives on the device of its replica. Spec: R4.6, R4.7.</summary>
    [Fact]
    public void Copies_go_to_their_device()
    {
        Assert.SkipUnless(cuda.is_available() && cuda.device_count() > 1, "no two GPUs here");
        using var scope = NewDisposeScope();
        var devices = new[] { new Device(DeviceType.CUDA, 0), new Device(DeviceType.CUDA, 1) };
        var model = new Holder(nn.LSTM(3, 4)).to(devices[0]);

        var copy = replicate(model, devices)[1];

        Assert.All(copy.parameters(), parameter => Assert.Equal(1, parameter.device_index));
        Assert.Equal(1, ((LSTM)copy.Held!).call(ones(2, 2, 3, device: devices[1])).Item1.device_index);
    }

    /// <summary>A weight that was put in the place of another is the one that the copy computes with. Spec: R4.6.</summary>
    [Fact]
    public void Replaced_weights_come_along()
    {
        using var scope = NewDisposeScope();
        var model = nn.GRUCell(3, 4);
        model.weight_ih = new Parameter(full(12, 3, 0.5f));

        var copy = replicate(model, [CPU, CPU])[1];

        AssertSame(model, copy, Kinds["GRUCell"].Call);
        copy.get_parameter("weight_ih")!.detach().zero_();
        Assert.Equal(0, copy.weight_ih!.sum().item<float>());
    }

    /// <summary>An output layer that is tied to an embedding is tied in the copy, in either order. Spec: R4.2, R4.6.</summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void Tied_embeddings_stay_tied(bool outputFirst)
    {
        using var scope = NewDisposeScope();
        var embedding = nn.Embedding(5, 2);
        var output = nn.Linear(2, 5, hasBias: false);
        output.weight = embedding.weight!;
        var model = new Holder(outputFirst ? new nn.Module[] { output, embedding } : [embedding, output]);

        var modules = (nn.Module[])replicate(model, [CPU, CPU])[1].Held!;
        var (copied, tied) = (modules.OfType<Embedding>().Single(), modules.OfType<Linear>().Single());

        tied.weight.detach().fill_(3);
        Assert.Equal(6, copied.call(tensor(1L)).sum().item<float>());
        tied.call(copied.call(tensor(1L))).sum().backward();
        Assert.Equal(Same.Bits(tied.weight.grad!), Same.Bits(copied.weight!.grad!));
        Assert.Null(embedding.weight!.grad);
    }

    /// <summary>Copying draws nothing, and copies that are disposed leave nothing behind. Spec: R4.10.</summary>
    [Fact]
    public void Copies_leave_nothing_behind()
    {
        using var model = nn.Transformer(8, 2, 1, 1, 16);
        using var random = get_rng_state();
        replicate(model, [CPU, CPU])[1].Dispose();
        var before = Same.Live();

        for (var round = 0; round < 10; round++)
        {
            replicate(model, [CPU, CPU, CPU]).Skip(1).ToList().ForEach(copy => copy.Dispose());
        }

        Assert.Equal(before, Same.Live());
        using var after = get_rng_state();
        Same.Trees(random, after);
    }

    private static void AssertSame(nn.Module model, nn.Module copy, Func<nn.Module, Tensor> call)
    {
        Assert.Equal(model.training, copy.training);
        var results = new[] { model, copy }.Select(module =>
        {
            manual_seed(5);
            module.zero_grad();
            var output = call(module);
            if (output.requires_grad)
            {
                (output * arange(output.numel(), dtype: output.dtype).reshape(output.shape)).sum().backward();
            }

            return (output, module.parameters().Select(parameter => parameter.grad?.to_dense()).ToList());
        }).ToList();
        Same.Trees(results[0], results[1]);
    }

    private static Tensor Sequence(nn.Module module, long size) => linspace(-1, 1, 10 * size, dtype: Type(module)).reshape(5, 2, size);

    private static Tensor State(nn.Module module, double value) => full(2, 4, value, dtype: Type(module));

    private static ScalarType Type(nn.Module module) => module.parameters().First().dtype;

    private static Tensor Lstm(nn.Module module) => ((LSTM)module).call(Sequence(module, 3)).Item1;

    private static Tensor Rnn(nn.Module module) => ((RNN)module).call(Sequence(module, 3)).Item1;

    private static Tensor Embedded(nn.Module module) => ((Embedding)module).call(tensor(new long[] { 0, 1, 2, 2 }));

    private static Tensor Bagged(nn.Module module) => ((EmbeddingBag)module).call(tensor(new long[] { 0, 1, 2, 3 }).reshape(2, 2));

    private static Tensor Attended(nn.Module module)
        => ((MultiheadAttention)module).call(Sequence(module, 8), Sequence(module, 8), Sequence(module, 8)).Item1;
}
