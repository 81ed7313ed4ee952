//! The rows. Each says only what it does differently from the plain row of its format.
//!
//! A quirk that is unsure is set the way that no provider refuses: what is not sent is not
//! complained about.

use super::{Auth, CallIds, Echo, EffortStyle, Provider, Quirks};
use crate::adapt::schema::Subset;
use crate::wire::Format;

/// A server that speaks openai-chat and is known for nothing else.
const CHAT: Provider = Provider {
    id: "",
    name: "",
    format: Format::OpenaiChat,
    base_url: "",
    auth: Auth::Bearer,
    env: &[],
    headers: &[],
    keys_at: "",
    quirks: PLAIN,
};

const PLAIN: Quirks = Quirks {
    developer: false,
    max_completion_tokens: false,
    stream_usage: true,
    schema: Subset::Full,
    ids: CallIds::Any,
    alternates: false,
    echo: Echo::None,
    effort: EffortStyle::ReasoningEffort,
    json_schema: false,
    parallel: false,
    text: false,
    cache_marks: false,
    cache_key: false,
    pdfs: false,
};

/// A server on this machine.
const LOCAL: Provider = Provider {
    auth: Auth::Optional,
    quirks: Quirks { schema: Subset::Plain, json_schema: true, text: true, ..PLAIN },
    ..CHAT
};

const RESPONSES: Provider = Provider {
    format: Format::OpenaiResponses,
    quirks: Quirks {
        developer: true,
        ids: CallIds::Word64,
        json_schema: true,
        parallel: true,
        cache_key: true,
        pdfs: true,
        ..PLAIN
    },
    ..CHAT
};

const ANTHROPIC: Provider = Provider {
    format: Format::Anthropic,
    auth: Auth::Header("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    quirks: Quirks { ids: CallIds::Word64, cache_marks: true, pdfs: true, ..PLAIN },
    ..CHAT
};

const GEMINI: Provider = Provider {
    format: Format::Gemini,
    auth: Auth::Header("x-goog-api-key"),
    quirks: Quirks { schema: Subset::Gemini, json_schema: true, pdfs: true, ..PLAIN },
    ..CHAT
};

/// The row of a server that speaks a format and is known for nothing else; `local` if it is on
/// this machine.
pub const fn plain(format: Format, local: bool) -> &'static Provider {
    match format {
        Format::OpenaiChat if local => &LOCAL,
        Format::OpenaiChat => &CHAT,
        Format::OpenaiResponses => &RESPONSES,
        Format::Anthropic => &ANTHROPIC,
        Format::Gemini => &GEMINI,
    }
}

/// All providers: first those that make models, then those that host them, then those that are a
/// server of one's own.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        id: "anthropic",
        name: "Anthropic",
        base_url: "https://api.anthropic.com/v1",
        env: &["ANTHROPIC_API_KEY"],
        keys_at: "https://console.anthropic.com/settings/keys",
        ..ANTHROPIC
    },
    Provider {
        id: "openai",
        name: "OpenAI",
        base_url: "https://api.openai.com/v1",
        env: &["OPENAI_API_KEY"],
        keys_at: "https://platform.openai.com/api-keys",
        ..RESPONSES
    },
    Provider {
        id: "google",
        name: "Google",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        env: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
        keys_at: "https://aistudio.google.com/apikey",
        ..GEMINI
    },
    Provider {
        id: "deepseek",
        name: "DeepSeek",
        base_url: "https://api.deepseek.com",
        env: &["DEEPSEEK_API_KEY"],
        keys_at: "https://platform.deepseek.com/api_keys",
        quirks: Quirks {
            echo: Echo::AlwaysReasoningContent,
            effort: EffortStyle::ThinkingToggle,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "mistral",
        name: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        env: &["MISTRAL_API_KEY"],
        keys_at: "https://console.mistral.ai/api-keys",
        // It refuses every field it does not know.
        quirks: Quirks {
            stream_usage: false,
            ids: CallIds::Nine,
            alternates: true,
            json_schema: true,
            parallel: true,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "xai",
        name: "xAI",
        base_url: "https://api.x.ai/v1",
        env: &["XAI_API_KEY"],
        keys_at: "https://console.x.ai",
        quirks: Quirks { json_schema: true, parallel: true, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "moonshotai",
        name: "Moonshot AI",
        base_url: "https://api.moonshot.ai/v1",
        env: &["MOONSHOT_API_KEY"],
        keys_at: "https://platform.moonshot.ai/console/api-keys",
        quirks: Quirks {
            schema: Subset::Plain,
            echo: Echo::ReasoningContent,
            effort: EffortStyle::ThinkingToggle,
            json_schema: true,
            cache_key: true,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "zai",
        name: "Z.AI",
        base_url: "https://api.z.ai/api/paas/v4",
        env: &["ZAI_API_KEY", "ZHIPU_API_KEY"],
        keys_at: "https://z.ai/manage-apikey/apikey-list",
        quirks: Quirks {
            echo: Echo::ReasoningContent,
            effort: EffortStyle::ThinkingToggle,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "alibaba",
        name: "Alibaba",
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        env: &["DASHSCOPE_API_KEY"],
        keys_at: "https://modelstudio.console.alibabacloud.com/?tab=api#/api-key",
        quirks: Quirks { effort: EffortStyle::EnableThinking, parallel: true, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "minimax",
        name: "MiniMax",
        base_url: "https://api.minimax.io/anthropic/v1",
        env: &["MINIMAX_API_KEY"],
        keys_at: "https://platform.minimax.io/user-center/basic-information/interface-key",
        ..ANTHROPIC
    },
    Provider {
        id: "cohere",
        name: "Cohere",
        base_url: "https://api.cohere.ai/compatibility/v1",
        env: &["COHERE_API_KEY"],
        keys_at: "https://dashboard.cohere.com/api-keys",
        quirks: Quirks { stream_usage: false, schema: Subset::Plain, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "perplexity",
        name: "Perplexity",
        base_url: "https://api.perplexity.ai",
        env: &["PERPLEXITY_API_KEY"],
        keys_at: "https://www.perplexity.ai/account/api/keys",
        quirks: Quirks { stream_usage: false, alternates: true, json_schema: true, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "openrouter",
        name: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        env: &["OPENROUTER_API_KEY"],
        keys_at: "https://openrouter.ai/keys",
        quirks: Quirks {
            echo: Echo::ReasoningDetails,
            effort: EffortStyle::ReasoningObject,
            json_schema: true,
            parallel: true,
            cache_marks: true,
            cache_key: true,
            pdfs: true,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "azure",
        name: "Azure",
        base_url: "https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1",
        auth: Auth::Header("api-key"),
        env: &["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"],
        keys_at: "https://ai.azure.com",
        ..RESPONSES
    },
    Provider {
        id: "groq",
        name: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        env: &["GROQ_API_KEY"],
        keys_at: "https://console.groq.com/keys",
        // A shape is refused beside tools.
        quirks: Quirks { parallel: true, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "togetherai",
        name: "Together AI",
        base_url: "https://api.together.xyz/v1",
        env: &["TOGETHER_API_KEY"],
        keys_at: "https://api.together.ai/settings/api-keys",
        quirks: Quirks { effort: EffortStyle::ReasoningSwitch, json_schema: true, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "fireworks-ai",
        name: "Fireworks AI",
        base_url: "https://api.fireworks.ai/inference/v1",
        env: &["FIREWORKS_API_KEY"],
        keys_at: "https://app.fireworks.ai/settings/users/api-keys",
        quirks: Quirks {
            echo: Echo::ReasoningContent,
            json_schema: true,
            cache_key: true,
            ..PLAIN
        },
        ..CHAT
    },
    Provider {
        id: "cerebras",
        name: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        env: &["CEREBRAS_API_KEY"],
        keys_at: "https://cloud.cerebras.ai",
        quirks: Quirks { max_completion_tokens: true, stream_usage: false, ..PLAIN },
        ..CHAT
    },
    Provider {
        id: "huggingface",
        name: "Hugging Face",
        base_url: "https://router.huggingface.co/v1",
        env: &["HF_TOKEN"],
        keys_at: "https://huggingface.co/settings/tokens",
        ..CHAT
    },
    Provider {
        id: "nvidia",
        name: "Nvidia",
        base_url: "https://integrate.api.nvidia.com/v1",
        env: &["NVIDIA_API_KEY"],
        keys_at: "https://build.nvidia.com/settings/api-keys",
        ..CHAT
    },
    Provider {
        id: "github-models",
        name: "GitHub Models",
        base_url: "https://models.github.ai/inference",
        env: &["GITHUB_TOKEN"],
        keys_at: "https://github.com/settings/tokens",
        ..CHAT
    },
    Provider {
        id: "ollama",
        name: "Ollama",
        base_url: "http://127.0.0.1:11434/v1",
        env: &["OLLAMA_API_KEY"],
        keys_at: "https://docs.ollama.com/quickstart",
        ..LOCAL
    },
    Provider {
        id: "lmstudio",
        name: "LM Studio",
        base_url: "http://127.0.0.1:1234/v1",
        env: &["LMSTUDIO_API_KEY"],
        keys_at: "https://lmstudio.ai/docs/developer/core/server",
        ..LOCAL
    },
    Provider {
        id: "vllm",
        name: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        env: &["VLLM_API_KEY"],
        keys_at: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        ..LOCAL
    },
    Provider {
        id: "llamacpp",
        name: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        env: &["LLAMA_API_KEY"],
        keys_at: "https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        quirks: Quirks { effort: EffortStyle::None, ..LOCAL.quirks },
        ..LOCAL
    },
];
