"""Telling a model's refusal from a summary, in the languages models refuse in.

Conservative on purpose: a refusal is short, opens with an apology, an inability or "as an AI", and says in the first person what
it won't do. A summary in which somebody refuses something ("Bob said he can't help") is none.
"""

from __future__ import annotations

import re

LONGEST = 600
"""Characters; anything longer has something else to say."""

_SORRY = (
    r"(?:(?:i['’]m|i am) (?:very |so |really )?sorry|sorry|my apologies|i apologi[sz]e|apologies|unfortunately|i['’]m afraid)\b"
)
_I_CANT = r"i(?:['’]m| am)? ?(?:can(?:no|['’])?t|can not|won['’]t|will not|unable to|not able to|not allowed to)"
_REFUSALS = [
    # English: anything refused after an apology, only a task refused without one ("I can't help laughing" is none)
    rf"{_SORRY}.{{0,60}}?\b{_I_CANT}.{{0,40}}?\b(?:help (?:you|with)|help[.,!]|assist|comply|do (?:that|this|so)|provide)",
    rf"{_SORRY}.{{0,60}}?\b{_I_CANT}.{{0,40}}?\b(?:summari[sz]e|fulfil|process|continue with|complete|answer|create)",
    rf"{_SORRY}.{{0,60}}?\bi don['’]t have (?:the|any|enough).{{0,40}}?\b(?:information|content|ability|context|material)",
    rf"(?:{_I_CANT}|i (?:must|have to) decline to) (?:help (?:you|with (?:that|this|your|summar))|help(?:[.,!]|$)|assist|comply)",
    rf"(?:{_I_CANT}|i (?:must|have to) decline to) (?:summari[sz]e|continue with|engage in|(?:do|provide) (?:that|this)\b)",
    rf"(?:{_I_CANT}|i (?:must|have to) decline to) (?:provide|fulfil|process|complete|answer|create) (?:a|that|this|the|your)\b",
    r"as an? (?:ai|artificial intelligence|large language|language)(?: language)?(?: model| assistant)?,? i\b",
    r"i(?:['’]m| am) (?:just |only )?an? (?:ai|large language|language)(?: language)?(?: model| assistant)\b"
    r".{0,60}?\b(?:can(?:no|['’])?t|not|unable)\b",
    r"i must (?:respectfully )?decline\b",
    # German
    r"(?:es tut mir leid|tut mir leid|leider|entschuldigung|ich bedau[e]?re)\b.{0,60}?\b(?:kann|darf|werde|möchte) ich\b.{0,60}?"
    r"\bnicht\b.{0,30}?\b(?:helfen|zusammenfassen|beantworten|unterstützen|erstellen|nachkommen|erfüllen|bearbeiten|weiterhelfen)",
    r"(?:(?:es tut mir leid|tut mir leid|leider),? (?:aber )?)?ich kann\b.{0,60}?\bnicht\b"
    r".{0,30}?\b(?:weiterhelfen|helfen|zusammenfassen|beantworten|nachkommen|erfüllen|bearbeiten)",
    r"als (?:eine? )?(?:ki|künstliche intelligenz|sprachmodell|ki-[\w-]+)\b.{0,20}?\bich\b",
    # French
    r"(?:(?:je suis )?(?:vraiment )?désolée?s?|je m['’]excuse|malheureusement|je regrette)\b.{0,60}?\bje ne (?:peux|suis|puis)\b"
    r".{0,60}?\b(?:aider|résumer|répondre|fournir|traiter|accéder|satisfaire|faire cela|continuer)",
    r"je ne peux pas (?:vous )?(?:aider|résumer|répondre|fournir|traiter|accéder|faire cela)",
    r"en tant qu(?:['’]|e )(?:ia|intelligence artificielle|modèle de langage|assistant)\b.{0,20}?\bje\b",
    # Spanish
    r"(?:lo siento|lamentablemente|lo lamento|disculp[ae])\b.{0,60}?\bno (?:puedo|podré|me es posible)\b"
    r".{0,40}?(?:ayudar|resumir|responder|proporcionar|cumplir|procesar|hacer eso|continuar)",
    r"no puedo (?:ayudar(?:te|le)?|resumir|responder a|proporcionar|cumplir con)\b",
    r"como (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje|asistente de ia)\b.{0,20}?\bno\b",
    # Portuguese
    r"(?:desculpe?|sinto muito|lamento|infelizmente)\b.{0,60}?\bnão (?:posso|consigo|poderei)\b"
    r".{0,40}?(?:ajudar|ajudá|resumir|responder|fornecer|atender|processar|fazer isso|continuar)",
    r"como (?:uma? )?(?:ia|inteligência artificial|modelo de linguagem|assistente de ia)\b.{0,20}?\bnão\b",
    # Italian
    r"(?:mi dispiace|purtroppo|mi scuso|spiacente)\b.{0,60}?\bnon (?:posso|sono in grado)\b"
    r".{0,40}?(?:aiutar|riassumere|rispondere|fornire|soddisfare|elaborare|farlo|continuare)",
    r"(?:come|in quanto) (?:ia|intelligenza artificiale|modello linguistico|assistente ia)\b.{0,20}?\bnon\b",
    # Dutch, Polish, Russian
    r"(?:het spijt me|sorry|helaas)\b.{0,60}?\bkan ik\b.{0,60}?\bniet\b.{0,30}?\b(?:helpen|samenvatten|beantwoorden|voldoen)",
    r"(?:przykro mi|przepraszam|niestety)\b.{0,60}?\bnie mogę\b.{0,40}?(?:pomóc|podsumować|odpowiedzieć|spełnić|streścić)",
    r"(?:извините|простите|к сожалению|мне жаль)\b.{0,60}?\bя не (?:могу|смогу)\b"
    r".{0,40}?(?:помочь|обобщить|ответить|выполнить|предоставить|сделать)",
    r"как (?:ии|языковая модель|искусственный интеллект)\b.{0,20}?\bя\b",
    # Chinese, Japanese, Korean
    r"(?:很|非常|十分)?(?:抱歉|对不起|對不起)[，,。！!]?.{0,10}?我.{0,10}?(?:无法|無法|不能|没办法|沒辦法).{0,20}?"
    r"(?:帮|幫|协助|協助|提供|总结|總結|概括|回答|满足|滿足|处理|處理|完成|执行|執行|继续|繼續)",
    r"(?:我)?(?:作为|作為|身为|身為)(?:一个|一個|一名)?(?:ai|人工智能|人工智慧|语言模型|語言模型|大型语言模型).{0,10}?我",
    r"(?:大変|誠に)?(?:申し訳(?:ありません|ございません)|すみません|ごめんなさい).{0,60}?"
    r"(?:お手伝い|お答え|要約|対応|ご要望|お応え|提供).{0,20}?(?:できません|できかねます|いたしかねます|できない)",
    r"(?:私は)?ai(?:言語モデル|アシスタント|モデル)?(?:として|なので|ですので)",
    r"(?:대단히 )?(?:죄송합니다|죄송하지만|미안하지만).{0,60}?"
    r"(?:도와|도움|요약|답변|제공|처리|수행).{0,20}?(?:없습니다|어렵습니다|못합니다)",
    r"(?:저는 )?ai(?: 언어 모델| 모델| 어시스턴트)?(?:로서|이므로|이기 때문에)",
]
_REFUSAL = re.compile("|".join(f"(?:{refusal})" for refusal in _REFUSALS), re.IGNORECASE | re.DOTALL)


def is_refusal(answer: str) -> bool:
    """Whether the whole answer is a refusal."""
    text = answer.strip().strip("\"'“”«»*_ ")
    return len(text) <= LONGEST and _REFUSAL.match(text) is not None
