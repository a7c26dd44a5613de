using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>Causal attention over two heads.</summary>
public class Attention : Module<Tensor, Tensor>
{
    private const long Heads = 2;
    private readonly string fault;
    private readonly Linear qkv, proj;

    public Attention(long width, string fault) : base("Attention")
    {
        this.fault = fault;
        qkv = Linear(width, 3 * width);
        proj = Linear(width, width);
        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        var (N, T, C) = (x.shape[0], x.shape[1], x.shape[2]);
        var parts = qkv.forward(x).chunk(3, -1);
        var (q, k, v) = fault == "key-value-swapped" ? (parts[0], parts[2], parts[1]) : (parts[0], parts[1], parts[2]);
        (q, k, v) = (Split(q), Split(k), Split(v));
        var scores = q.matmul(k.transpose(-2, -1));
        scores = fault switch
        {
            "attention-unscaled" => scores,
            "attention-scaled-by-width" => scores / Math.Sqrt(C),
            _ => scores / Math.Sqrt(C / Heads),
        };
        if (fault != "attention-unmasked")
        {
            var mask = ones(T, T, dtype: @bool).triu(fault == "attention-mask-nan" ? 0 : 1);
            scores = scores.masked_fill(mask, double.NegativeInfinity);
        }

        var weights = softmax(scores, fault == "softmax-dim" ? 1 : -1);
        var y = weights.matmul(v);
        y = fault == "heads-not-transposed" ? y.reshape(N, T, C) : y.transpose(1, 2).reshape(N, T, C);
        return proj.forward(y);

        Tensor Split(Tensor part) => part.view(N, T, Heads, C / Heads).transpose(1, 2);
    }
}

/// <summary>Attention and a feed-forward net, each normalized before and with a way around it.</summary>
public class Block : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly LayerNorm ln1, ln2;
    private readonly Attention attn;
    private readonly Sequential mlp;

    public Block(long width, string fault) : base("Block")
    {
        this.fault = fault;
        ln1 = LayerNorm(width);
        attn = new Attention(width, fault);
        ln2 = LayerNorm(width, eps: fault == "layer-norm-eps" ? 1e-6 : 1e-5);
        var gelu = fault == "gelu-tanh" ? (Module<Tensor, Tensor>)GELU(TorchSharp.Modules.GELU.Approximate.tanh) : GELU();
        mlp = Sequential(Linear(width, 4 * width), gelu, Linear(4 * width, width));
        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        if (fault == "norm-after")
        {
            x = ln1.forward(x + attn.forward(x));
            return ln2.forward(x + mlp.forward(x));
        }

        x = x + attn.forward(ln1.forward(x));
        return x + mlp.forward(ln2.forward(x));
    }
}

/// <summary>A language model of two blocks; its output weight is that of the token embedding.</summary>
public class Transformer : Module<Tensor, Tensor>
{
    private const long Width = 16;
    private readonly string fault;
    private readonly Embedding tok, pos;
    private readonly ModuleList<Block> blocks = new();
    private readonly LayerNorm ln;
    private readonly Linear? head;

    public Transformer(string fault = "") : base("Transformer")
    {
        this.fault = fault;
        tok = Embedding(20, Width);
        pos = Embedding(9, Width);
        for (var i = 0; i < 2; i++)
        {
            blocks.Add(new Block(Width, i == 1 ? fault : ""));
        }

        ln = LayerNorm(Width);
        if (fault == "weight-not-tied")
        {
            head = Linear(Width, 20, hasBias: false);
        }

        RegisterComponents();
    }

    public override Tensor forward(Tensor tokens)
    {
        using var scope = NewDisposeScope();
        var positions = arange(tokens.shape[1]) + (fault == "positions-from-one" ? 1 : 0);
        var x = tok.forward(tokens) + pos.forward(positions);
        foreach (var block in blocks)
        {
            x = block.forward(x);
        }

        x = fault == "final-norm-unused" ? x : ln.forward(x);
        var logits = head is null ? linear(x, tok.weight!) : head.forward(x);
        return logits.transpose(1, 2).MoveToOuterDisposeScope();
    }
}
