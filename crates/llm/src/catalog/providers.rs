//! The provider entries. Each lists only its differences from the generic entry of its format, such
//! as `GENERIC_CHAT`.
//!
//! A provider whose list of models is public, or that documents none, has no `key_check_path`.
//!
//! An uncertain quirk gets the value that no provider rejects: a field that is not sent causes no
//! error.

use super::{AuthScheme, CallIdFormat, Provider, Quirks, ReasoningEcho, ReasoningEffortField};
use crate::adapt::schema::SchemaSubset;
use crate::wire_format::WireFormat;

/// Base entry for a server about which only the `openai-chat` format is known.
const GENERIC_CHAT: Provider = Provider {
    id: "",
    name: "",
    format: WireFormat::OpenaiChat,
    base_url: "",
    auth: AuthScheme::Bearer,
    key_env_vars: &[],
    fixed_headers: &[],
    key_help_url: "",
    key_check_path: Some("/models"),
    quirks: DEFAULT_QUIRKS,
};

const DEFAULT_QUIRKS: Quirks = Quirks {
    developer_role: false,
    max_completion_tokens: false,
    stream_usage: true,
    schema_subset: SchemaSubset::Full,
    call_id_format: CallIdFormat::Any,
    strict_alternation: false,
    reasoning_echo: ReasoningEcho::None,
    effort_style: ReasoningEffortField::ReasoningEffort,
    json_schema: false,
    parallel_tool_calls: false,
    inline_calls: false,
    think_tags: false,
    strict_tools: false,
    cache_marks: false,
    cache_key: false,
    pdfs: false,
};

/// Base entry for a server on this machine.
const GENERIC_LOCAL: Provider = Provider {
    auth: AuthScheme::OptionalBearer,
    quirks: Quirks {
        schema_subset: SchemaSubset::Basic,
        json_schema: true,
        inline_calls: true,
        ..DEFAULT_QUIRKS
    },
    ..GENERIC_CHAT
};

const GENERIC_RESPONSES: Provider = Provider {
    format: WireFormat::OpenaiResponses,
    quirks: Quirks {
        developer_role: true,
        call_id_format: CallIdFormat::Identifier64,
        json_schema: true,
        parallel_tool_calls: true,
        cache_key: true,
        pdfs: true,
        ..DEFAULT_QUIRKS
    },
    ..GENERIC_CHAT
};

const GENERIC_ANTHROPIC: Provider = Provider {
    format: WireFormat::Anthropic,
    auth: AuthScheme::Header("x-api-key"),
    fixed_headers: &[("anthropic-version", "2023-06-01")],
    quirks: Quirks {
        call_id_format: CallIdFormat::Identifier64,
        cache_marks: true,
        pdfs: true,
        ..DEFAULT_QUIRKS
    },
    ..GENERIC_CHAT
};

const GENERIC_GEMINI: Provider = Provider {
    format: WireFormat::Gemini,
    auth: AuthScheme::Header("x-goog-api-key"),
    quirks: Quirks {
        schema_subset: SchemaSubset::Gemini,
        json_schema: true,
        pdfs: true,
        ..DEFAULT_QUIRKS
    },
    ..GENERIC_CHAT
};

/// Returns the generic entry of a format; `local` selects the one for a server on this machine.
pub const fn generic_provider(format: WireFormat, local: bool) -> &'static Provider {
    match format {
        WireFormat::OpenaiChat if local => &GENERIC_LOCAL,
        WireFormat::OpenaiChat => &GENERIC_CHAT,
        WireFormat::OpenaiResponses => &GENERIC_RESPONSES,
        WireFormat::Anthropic => &GENERIC_ANTHROPIC,
        WireFormat::Gemini => &GENERIC_GEMINI,
    }
}

/// All providers: first model vendors, then hosting services, then servers that the user runs.
pub const ALL_PROVIDERS: &[Provider] = &[
    Provider {
        id: "anthropic",
        name: "Anthropic",
        base_url: "https://api.anthropic.com/v1",
        key_env_vars: &["ANTHROPIC_API_KEY"],
        key_help_url: "https://console.anthropic.com/settings/keys",
        ..GENERIC_ANTHROPIC
    },
    Provider {
        id: "openai",
        name: "OpenAI",
        base_url: "https://api.openai.com/v1",
        key_env_vars: &["OPENAI_API_KEY"],
        key_help_url: "https://platform.openai.com/api-keys",
        ..GENERIC_RESPONSES
    },
    Provider {
        id: "google",
        name: "Google",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_env_vars: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
        key_help_url: "https://aistudio.google.com/apikey",
        ..GENERIC_GEMINI
    },
    Provider {
        id: "deepseek",
        name: "DeepSeek",
        base_url: "https://api.deepseek.com",
        key_env_vars: &["DEEPSEEK_API_KEY"],
        key_help_url: "https://platform.deepseek.com/api_keys",
        quirks: Quirks {
            reasoning_echo: ReasoningEcho::AlwaysReasoningContent,
            effort_style: ReasoningEffortField::ThinkingToggle,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "mistral",
        name: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        key_env_vars: &["MISTRAL_API_KEY"],
        key_help_url: "https://console.mistral.ai/api-keys",
        // Mistral rejects every unknown field.
        quirks: Quirks {
            stream_usage: false,
            call_id_format: CallIdFormat::NineAlphanumeric,
            strict_alternation: true,
            json_schema: true,
            parallel_tool_calls: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "xai",
        name: "xAI",
        base_url: "https://api.x.ai/v1",
        key_env_vars: &["XAI_API_KEY"],
        key_help_url: "https://console.x.ai",
        quirks: Quirks { json_schema: true, parallel_tool_calls: true, ..DEFAULT_QUIRKS },
        ..GENERIC_CHAT
    },
    Provider {
        id: "moonshotai",
        name: "Moonshot AI",
        base_url: "https://api.moonshot.ai/v1",
        key_env_vars: &["MOONSHOT_API_KEY"],
        key_help_url: "https://platform.moonshot.ai/console/api-keys",
        quirks: Quirks {
            schema_subset: SchemaSubset::Basic,
            reasoning_echo: ReasoningEcho::ReasoningContent,
            effort_style: ReasoningEffortField::ThinkingToggle,
            json_schema: true,
            cache_key: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "zai",
        name: "Z.AI",
        base_url: "https://api.z.ai/api/paas/v4",
        key_env_vars: &["ZAI_API_KEY", "ZHIPU_API_KEY"],
        key_help_url: "https://z.ai/manage-apikey/apikey-list",
        quirks: Quirks {
            reasoning_echo: ReasoningEcho::ReasoningContent,
            effort_style: ReasoningEffortField::ThinkingToggle,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "alibaba",
        name: "Alibaba",
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_env_vars: &["DASHSCOPE_API_KEY"],
        key_help_url: "https://modelstudio.console.alibabacloud.com/?tab=api#/api-key",
        quirks: Quirks {
            effort_style: ReasoningEffortField::EnableThinking,
            parallel_tool_calls: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "minimax",
        name: "MiniMax",
        base_url: "https://api.minimax.io/anthropic/v1",
        key_env_vars: &["MINIMAX_API_KEY"],
        key_help_url: "https://platform.minimax.io/user-center/basic-information/interface-key",
        key_check_path: None,
        ..GENERIC_ANTHROPIC
    },
    Provider {
        id: "cohere",
        name: "Cohere",
        base_url: "https://api.cohere.ai/compatibility/v1",
        key_env_vars: &["COHERE_API_KEY"],
        key_help_url: "https://dashboard.cohere.com/api-keys",
        key_check_path: None,
        quirks: Quirks {
            stream_usage: false,
            schema_subset: SchemaSubset::Basic,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "perplexity",
        name: "Perplexity",
        base_url: "https://api.perplexity.ai",
        key_env_vars: &["PERPLEXITY_API_KEY"],
        key_help_url: "https://www.perplexity.ai/account/api/keys",
        key_check_path: None,
        quirks: Quirks {
            stream_usage: false,
            strict_alternation: true,
            json_schema: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "openrouter",
        name: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env_vars: &["OPENROUTER_API_KEY"],
        key_help_url: "https://openrouter.ai/keys",
        key_check_path: Some("/key"),
        quirks: Quirks {
            reasoning_echo: ReasoningEcho::ReasoningDetails,
            effort_style: ReasoningEffortField::ReasoningObject,
            json_schema: true,
            parallel_tool_calls: true,
            cache_marks: true,
            cache_key: true,
            pdfs: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "azure",
        name: "Azure",
        base_url: "https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1",
        auth: AuthScheme::Header("api-key"),
        key_env_vars: &["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"],
        key_help_url: "https://ai.azure.com",
        key_check_path: None,
        ..GENERIC_RESPONSES
    },
    Provider {
        id: "groq",
        name: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        key_env_vars: &["GROQ_API_KEY"],
        key_help_url: "https://console.groq.com/keys",
        // `json_schema` stays off: Groq rejects a response schema together with tools.
        quirks: Quirks { parallel_tool_calls: true, ..DEFAULT_QUIRKS },
        ..GENERIC_CHAT
    },
    Provider {
        id: "togetherai",
        name: "Together AI",
        base_url: "https://api.together.xyz/v1",
        key_env_vars: &["TOGETHER_API_KEY"],
        key_help_url: "https://api.together.ai/settings/api-keys",
        quirks: Quirks {
            effort_style: ReasoningEffortField::ReasoningSwitch,
            json_schema: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "fireworks-ai",
        name: "Fireworks AI",
        base_url: "https://api.fireworks.ai/inference/v1",
        key_env_vars: &["FIREWORKS_API_KEY"],
        key_help_url: "https://app.fireworks.ai/settings/users/api-keys",
        quirks: Quirks {
            reasoning_echo: ReasoningEcho::ReasoningContent,
            json_schema: true,
            cache_key: true,
            ..DEFAULT_QUIRKS
        },
        ..GENERIC_CHAT
    },
    Provider {
        id: "cerebras",
        name: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        key_env_vars: &["CEREBRAS_API_KEY"],
        key_help_url: "https://cloud.cerebras.ai",
        quirks: Quirks { max_completion_tokens: true, stream_usage: false, ..DEFAULT_QUIRKS },
        ..GENERIC_CHAT
    },
    Provider {
        id: "huggingface",
        name: "Hugging Face",
        base_url: "https://router.huggingface.co/v1",
        key_env_vars: &["HF_TOKEN"],
        key_help_url: "https://huggingface.co/settings/tokens",
        key_check_path: None,
        ..GENERIC_CHAT
    },
    Provider {
        id: "nvidia",
        name: "Nvidia",
        base_url: "https://integrate.api.nvidia.com/v1",
        key_env_vars: &["NVIDIA_API_KEY"],
        key_help_url: "https://build.nvidia.com/settings/api-keys",
        key_check_path: None,
        ..GENERIC_CHAT
    },
    Provider {
        id: "github-models",
        name: "GitHub Models",
        base_url: "https://models.github.ai/inference",
        key_env_vars: &["GITHUB_TOKEN"],
        key_help_url: "https://github.com/settings/tokens",
        key_check_path: None,
        ..GENERIC_CHAT
    },
    Provider {
        id: "ollama",
        name: "Ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key_env_vars: &["OLLAMA_API_KEY"],
        key_help_url: "https://docs.ollama.com/quickstart",
        ..GENERIC_LOCAL
    },
    Provider {
        id: "lmstudio",
        name: "LM Studio",
        base_url: "http://127.0.0.1:1234/v1",
        key_env_vars: &["LMSTUDIO_API_KEY"],
        key_help_url: "https://lmstudio.ai/docs/developer/core/server",
        ..GENERIC_LOCAL
    },
    Provider {
        id: "vllm",
        name: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        key_env_vars: &["VLLM_API_KEY"],
        key_help_url: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        ..GENERIC_LOCAL
    },
    Provider {
        id: "llamacpp",
        name: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_env_vars: &["LLAMA_API_KEY"],
        key_help_url: "https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        quirks: Quirks { effort_style: ReasoningEffortField::None, ..GENERIC_LOCAL.quirks },
        ..GENERIC_LOCAL
    },
];
