"""The questions every participant is asked after the work, before those of the environment."""

from environments.contract import SurveyQuestion

COMMON = (
    SurveyQuestion("difficulty", "How hard was it?", ("easy", "fair", "hard", "very hard")),
    SurveyQuestion(
        "expectation", "How did you do, compared with what you expected?", ("better", "as expected", "worse")
    ),
    SurveyQuestion("ai_tools", "Which AI tools did you use, and what for? Leave it empty for none."),
    SurveyQuestion(
        "trouble", "Did the workbench or the machine get in your way?", ("no", "a little", "seriously")
    ),
    SurveyQuestion("remarks", "What should the people who read this record know?"),
)


def questions(own: tuple[SurveyQuestion, ...]) -> tuple[SurveyQuestion, ...]:
    """Return the common questions and an environment's own; a key of its own replaces a common one."""
    keys = {question.key for question in own}
    return (*(question for question in COMMON if question.key not in keys), *own)
